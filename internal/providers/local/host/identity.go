package host

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/providers/local/clientcert"
)

// certificateLife is the lifetime of certificates made here. Those in use are renewed after two thirds of it.
const certificateLife = 365 * 24 * time.Hour

// errNoCA means that no machine has the cluster's CA yet.
var errNoCA = errors.New("no machine has the cluster's authority yet")

// certificateAuthority is the cluster's own CA, which every control-plane machine has on its disk.
type certificateAuthority struct {
	pem    []byte
	issuer certificate.Issuer
}

func (h *Host) findCA() (*certificateAuthority, error) {
	err := errNoCA
	for _, m := range h.listMachines() {
		if !m.spec.ControlPlane {
			continue
		}
		var a *certificateAuthority
		if a, err = readCA(m.dir.RootFS("/etc/kubernetes/pki/ca.crt"),
			m.dir.RootFS("/etc/kubernetes/pki/ca.key")); err == nil {
			return a, nil
		}
	}
	return nil, err
}

func readCA(certFile, keyFile string) (*certificateAuthority, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, errors.Join(errNoCA, err)
	}
	block, _ := pem.Decode(cert)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate", certFile)
	}
	a := &certificateAuthority{pem: cert}
	if a.issuer.Certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fmt.Errorf("reading %s: %w", certFile, err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, errors.Join(errNoCA, err)
	}
	private, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyFile, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s holds a key that cannot sign", keyFile)
	}
	a.issuer.Key = signer
	return a, nil
}

// sign makes a key and a certificate for it, both in PEM form.
func (a *certificateAuthority) sign(template *x509.Certificate, now time.Time) (cert, key []byte, err error) {
	k, err := certificate.NewKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	terms := certificate.Terms{SerialBits: 120, Now: now, Backdate: 2 * time.Hour, Lifetime: certificateLife}
	c, err := a.issuer.Issue(template, terms, k.Public())
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(k); err != nil {
		return nil, nil, err
	}
	return certificate.Encode(c), key, nil
}

// servingCertificate makes a certificate for a kubelet's port.
func (h *Host) servingCertificate(names []string, address netip.Addr) (cert, key []byte, err error) {
	a, err := h.findCA()
	if err != nil {
		return nil, nil, err
	}
	return a.sign(&x509.Certificate{
		Subject:  pkix.Name{CommonName: "system:node:" + names[0], Organization: []string{"system:nodes"}},
		DNSNames: names, IPAddresses: []net.IP{address.AsSlice()}, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth,
		},
	}, h.cfg.Clock.Now())
}

// nodeCertificate makes a certificate for a node, as the cluster's controller manager signs them for kubelets.
func (h *Host) nodeCertificate(node string) (cert, key []byte, err error) {
	a, err := h.findCA()
	if err != nil {
		return nil, nil, err
	}
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, h.cfg.Clock.Now())
}

// renewedAdminConfig is adminConfig for a client of long life: its certificate is renewed until ctx ends.
func (h *Host) renewedAdminConfig(ctx context.Context) (*rest.Config, error) {
	cfg, err := h.adminConfig()
	if err != nil {
		return nil, err
	}
	return clientcert.Renew(ctx, cfg, h.cfg.Clock, func() (tls.Certificate, error) {
		fresh, err := h.adminConfig()
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.X509KeyPair(fresh.CertData, fresh.KeyData)
	})
}

// adminConfig reaches the cluster through its endpoint with the rights of its administrators. Its rate limit is high,
// because one client simulates all nodes and pods of the cluster.
func (h *Host) adminConfig() (*rest.Config, error) {
	a, err := h.findCA()
	if err != nil {
		return nil, err
	}
	cert, key, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "polder:local-host", Organization: []string{"kubeadm:cluster-admins"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, h.cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + h.cluster.Endpoint().String(), UserAgent: "polder-local-host", QPS: 200, Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.pem, CertData: cert, KeyData: key},
	}, nil
}

// removeMirrorPods deletes the mirror pods that a removed machine has left in the cluster: no kubelet will, and kubeadm
// would take them for members of etcd. It is best effort: with the last machine there is no cluster any more.
func (h *Host) removeMirrorPods(ctx context.Context, node string) {
	cfg, err := h.adminConfig()
	if err != nil {
		return
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return
	}
	if len(h.servingMachines()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = c.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(ctx,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + node, LabelSelector: "tier=control-plane",
		})
	if err != nil {
		h.cfg.Log.Warn("pods of a removed machine were left", "node", node, "error", err)
	}
}

func (h *Host) servingMachines() (all []*machine) {
	for _, m := range h.listMachines() {
		if m.kubelet.IsServing() {
			all = append(all, m)
		}
	}
	return all
}
