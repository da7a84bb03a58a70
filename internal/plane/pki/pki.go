package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/files/certificate"
)

// AdminGroup is the group of the admin kubeconfig. It gets its rights by RBAC, not by a
// name the API server trusts blindly, so they can be taken away.
const AdminGroup = "polder:admins"

// WebhookHost is the name webhooks are registered under. It exists nowhere but in the
// plane's own dialer.
const WebhookHost = "webhooks.polder.internal"

// Config says which certificates to make. Zero values are documented at each field.
type Config struct {
	Dir         string            // where everything is kept
	StoreExists bool              // there is data already, so the keys it depends on must exist too
	Server      string            // URL of the API, for the kubeconfig
	Kubeconfig  string            // path of the admin kubeconfig
	Names       []string          // further names and addresses the API is reached under
	CALife      time.Duration     // 0 means ten years
	LeafLife    time.Duration     // 0 means one year
	Clock       clock.WithTicker  // nil means the real one
	Interval    time.Duration     // how often renewals are checked for; 0 means an hour, or less for short lives
	OnRenew     func(file string) // called with each file that was made or renewed; optional
}

// PKI holds the plane's certificates. Safe for concurrent use once made.
type PKI struct {
	cfg     Config
	webhook atomic.Pointer[tls.Certificate]
	serving atomic.Pointer[tls.Certificate]
	health  atomic.Pointer[renewalResult]
	ready   chan struct{}
}

// Names of the files in the pki directory.
const (
	serverCAFile     = "server-ca.pem"
	clientCAFile     = "client-ca.pem"
	apiserverFile    = "apiserver.pem"
	webhookFile      = "webhooks.pem"
	adminFile        = "admin.pem"
	serverCACertFile = "server-ca.crt"
	clientCACertFile = "client-ca.crt"
)

// New makes what is missing and renews what is due.
func New(cfg Config) (*PKI, error) {
	if cfg.CALife == 0 {
		cfg.CALife = 10 * 365 * 24 * time.Hour
	}
	if cfg.LeafLife == 0 {
		cfg.LeafLife = 365 * 24 * time.Hour
	}
	if cfg.Interval == 0 {
		cfg.Interval = min(time.Hour, cfg.LeafLife/20)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.OnRenew == nil {
		cfg.OnRenew = func(string) {}
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	p := &PKI{cfg: cfg, ready: make(chan struct{})}
	if err := p.loadOrMakeKeys(); err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	return p, p.ensure()
}

// ensure makes or renews every certificate that needs it. It can be repeated at any time
// and after a crash at any point.
func (p *PKI) ensure() error {
	serverCA, err := p.ensureAuthority(serverCAFile, serverCACertFile, "polder-server-ca")
	if err != nil {
		return err
	}
	clientCA, err := p.ensureAuthority(clientCAFile, clientCACertFile, "polder-client-ca")
	if err != nil {
		return err
	}
	names, ips := p.servingNames()
	serving, err := p.ensureLeaf(leafSpec{file: apiserverFile, subject: pkix.Name{CommonName: "polder-apiserver"},
		usage: x509.ExtKeyUsageServerAuth, names: names, ips: ips}, serverCA)
	if err != nil {
		return err
	}
	p.serving.Store(&tls.Certificate{Certificate: [][]byte{serving.cert.Raw}, PrivateKey: serving.key, Leaf: serving.cert})
	wh, err := p.ensureLeaf(leafSpec{file: webhookFile, subject: pkix.Name{CommonName: WebhookHost},
		usage: x509.ExtKeyUsageServerAuth, names: []string{WebhookHost}}, serverCA)
	if err != nil {
		return err
	}
	p.webhook.Store(&tls.Certificate{Certificate: [][]byte{wh.cert.Raw}, PrivateKey: wh.key, Leaf: wh.cert})
	admin, err := p.ensureLeaf(leafSpec{file: adminFile,
		subject: pkix.Name{CommonName: "polder-admin", Organization: []string{AdminGroup}},
		usage:   x509.ExtKeyUsageClientAuth}, clientCA)
	if err != nil {
		return err
	}
	return p.writeKubeconfig(serverCA, admin)
}

// servingNames are the names and addresses in the API server's certificate, in a fixed order.
func (p *PKI) servingNames() (names []string, ips []net.IP) {
	names = []string{"localhost"}
	ips = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, n := range p.cfg.Names {
		ip := net.ParseIP(n)
		switch {
		case ip != nil && !slices.ContainsFunc(ips, ip.Equal):
			ips = append(ips, ip)
		case ip == nil && !slices.Contains(names, n):
			names = append(names, n)
		}
	}
	return names, ips
}

// ensureAuthority loads an authority, makes it if there is none, and renews it, with its key kept, if it is due.
// The file trust gets the certificate without the key.
func (p *PKI) ensureAuthority(file, trust, name string) (keyPair, error) {
	path := p.Path(file)
	ca, ok, err := loadKeyPair(path)
	if err != nil {
		return ca, err
	}
	if !ok {
		if ca.key, err = certificate.NewKey(); err != nil {
			return ca, fmt.Errorf("making key of %s: %w", name, err)
		}
	}
	if !ok || needsRenewal(ca.cert, p.cfg.Clock.Now()) {
		if ca.cert, err = selfSign(name, ca.key, p.cfg.Clock.Now(), p.cfg.CALife); err != nil {
			return ca, fmt.Errorf("signing %s: %w", name, err)
		}
		if err := ca.save(path); err != nil {
			return ca, err
		}
		p.cfg.OnRenew(file)
	}
	return ca, writeIfChanged(p.Path(trust), certificate.Encode(ca.cert))
}

// ensureLeaf loads a certificate and replaces it if it is missing, due, or no longer what is wanted.
func (p *PKI) ensureLeaf(l leafSpec, ca keyPair) (keyPair, error) {
	path := p.Path(l.file)
	c, ok, err := loadKeyPair(path)
	if err != nil {
		return c, err
	}
	if ok && !needsRenewal(c.cert, p.cfg.Clock.Now()) && l.matches(c.cert, ca.cert) {
		return c, nil
	}
	if c.key, err = certificate.NewKey(); err != nil {
		return c, fmt.Errorf("making key for %s: %w", l.file, err)
	}
	if c.cert, err = issue(l, c.key, ca, p.cfg.Clock.Now(), p.cfg.LeafLife); err != nil {
		return c, fmt.Errorf("signing %s: %w", l.file, err)
	}
	if err := c.save(path); err != nil {
		return c, err
	}
	p.cfg.OnRenew(l.file)
	return c, nil
}

// writeIfChanged writes a file unless it has the content already, since ensure runs again and again.
func writeIfChanged(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	return atomicfile.Write(path, data, 0o600)
}

// Path is where a file of the pki directory is.
func (p *PKI) Path(file string) string { return filepath.Join(p.cfg.Dir, file) }

// APIServerFile is the file with the API server's certificate and key.
func (p *PKI) APIServerFile() string { return p.Path(apiserverFile) }

// ClientCAFile is the file with the authority whose client certificates may log in.
func (p *PKI) ClientCAFile() string { return p.Path(clientCACertFile) }

// ServerCA returns the certificate that clients of the plane should trust.
func (p *PKI) ServerCA() ([]byte, error) {
	b, err := os.ReadFile(p.Path(serverCACertFile))
	if err != nil {
		return nil, fmt.Errorf("reading server authority: %w", err)
	}
	return b, nil
}

// ServingCertificate returns the present certificate of the API server, for others who serve under the same names.
func (p *PKI) ServingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return p.serving.Load(), nil
}

// WebhookCertificate returns the present certificate of the webhook server, for tls.Config.GetCertificate.
func (p *PKI) WebhookCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return p.webhook.Load(), nil
}
