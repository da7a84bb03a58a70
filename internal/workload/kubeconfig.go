// Package workload gives controllers access to workload clusters: by the kubeconfig that Cluster API keeps in a
// Secret, of which only what can do no harm here is used.
package workload

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// timeout is that of one request to a workload cluster.
const timeout = 15 * time.Second

// maxKubeconfig is how many bytes a kubeconfig may have.
const maxKubeconfig = 256 << 10

// RESTConfigFromKubeconfig makes a client configuration from a kubeconfig. A kubeconfig can do more than name a
// cluster: run programs, read files, send its bearer's credentials through a proxy. Whoever may write the Secret
// must not be able to make us do so; such a kubeconfig is refused.
func RESTConfigFromKubeconfig(kubeconfig []byte) (*rest.Config, error) {
	if len(kubeconfig) > maxKubeconfig {
		return nil, fmt.Errorf("the kubeconfig has %d bytes, and may have %d", len(kubeconfig), maxKubeconfig)
	}
	file, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be read") // the reason could quote a key
	}
	context, ok := file.Contexts[file.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no context %q", file.CurrentContext)
	}
	cluster, user := file.Clusters[context.Cluster], file.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("the kubeconfig has no cluster or no user for context %q", file.CurrentContext)
	}
	if err := errors.Join(checkCluster(cluster), checkUser(user)); err != nil {
		return nil, fmt.Errorf("the kubeconfig is refused: %w", err)
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		Timeout: timeout,
		QPS:     -1, // no limit: we make few requests at a time, and the cluster protects itself
	}, nil
}

func checkCluster(c *api.Cluster) error {
	u, err := url.Parse(c.Server)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil:
		return errors.New("its server is not an https URL")
	case c.InsecureSkipTLSVerify:
		return errors.New("it does not verify the server (insecure-skip-tls-verify)")
	case len(c.CertificateAuthorityData) == 0:
		return errors.New("it has no certificate-authority-data")
	case c.CertificateAuthority != "":
		return errors.New("it names a file (certificate-authority)")
	case c.ProxyURL != "":
		return errors.New("it names a proxy (proxy-url)")
	}
	return nil
}

func checkUser(u *api.AuthInfo) error {
	switch {
	case u.Exec != nil:
		return errors.New("it runs a program (exec)")
	case u.AuthProvider != nil:
		return errors.New("it names an auth-provider")
	case u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "":
		return errors.New("it names a file (client-certificate, client-key or tokenFile)")
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return errors.New("it impersonates somebody")
	case u.Username != "" || u.Password != "":
		return errors.New("it has a user name and a password")
	}
	return nil
}
