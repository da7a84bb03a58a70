package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// contextName names cluster, user and context in the kubeconfig, so that a merged
// kubeconfig tells where each came from.
const contextName = "polder"

// writeKubeconfig writes the admin kubeconfig, complete in itself so that it can be copied.
func (p *PKI) writeKubeconfig(ca, admin keyPair) error {
	key, err := certificate.EncodeKey(admin.key)
	if err != nil {
		return fmt.Errorf("encoding admin key: %w", err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters[contextName] = &clientcmdapi.Cluster{
		Server: p.cfg.Server, CertificateAuthorityData: certificate.Encode(ca.cert),
	}
	c.AuthInfos[contextName+"-admin"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: certificate.Encode(admin.cert), ClientKeyData: key,
	}
	c.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName + "-admin"}
	c.CurrentContext = contextName
	b, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("encoding admin kubeconfig: %w", err)
	}
	return writeIfChanged(p.cfg.Kubeconfig, b)
}
