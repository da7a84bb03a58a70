package kubeconfigrequest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// maxKubeconfig is how many bytes of a Secret are parsed.
const maxKubeconfig = 256 << 10

// kubeconfigUser returns the name of the user in the kubeconfig.
func (o *credentialSpec) kubeconfigUser() string { return "polder-" + string(o.role) }

// newKubeconfig makes a key, a certificate for it, and a kubeconfig with both.
func (o *credentialSpec) newKubeconfig() ([]byte, *x509.Certificate, error) {
	key, err := certificate.NewKey()
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	encoded, err := certificate.EncodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	c, err := o.signCertificate(key.Public())
	if err != nil {
		return nil, nil, err
	}
	file, err := o.encodeKubeconfig(certificate.Encode(c), encoded)
	return file, c, err
}

// encodeKubeconfig returns the whole file. The same input gives the same bytes, which reusableCertificate relies on.
func (o *credentialSpec) encodeKubeconfig(certPEM, keyPEM []byte) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[o.cluster] = &clientcmdapi.Cluster{Server: o.endpoint, CertificateAuthorityData: o.authority.bundle}
	c.AuthInfos[o.kubeconfigUser()] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	c.Contexts[o.cluster] = &clientcmdapi.Context{Cluster: o.cluster, AuthInfo: o.kubeconfigUser()}
	c.CurrentContext = o.cluster
	file, err := clientcmd.Write(*c)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be written") // the reason could quote the key
	}
	return file, nil
}

// reusableCertificate returns the certificate in a kubeconfig that was made for this request before, if it would be
// made the same way now; otherwise nil. A file with anything else in it is not used: whoever uses it would be given
// that too.
func (o *credentialSpec) reusableCertificate(file []byte) *x509.Certificate {
	if len(file) == 0 || len(file) > maxKubeconfig {
		return nil
	}
	c, err := clientcmd.Load(file)
	if err != nil || c.AuthInfos[o.kubeconfigUser()] == nil {
		return nil
	}
	user := c.AuthInfos[o.kubeconfigUser()]
	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil || len(pair.Certificate) != 1 {
		return nil
	}
	same, err := o.encodeKubeconfig(user.ClientCertificateData, user.ClientKeyData)
	if err != nil || !bytes.Equal(same, file) {
		return nil
	}
	made, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || !o.matches(made) {
		return nil
	}
	return made
}
