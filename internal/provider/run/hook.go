package run

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
	ownadmission "github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/internal/guard"
)

const hookPath = "/validate-workloadcluster"

// certificateLife is longer than any process lives; a new one has a new certificate.
const certificateLife = 10 * 365 * 24 * time.Hour

// hook is the provider's say in admission. It serves with a certificate of its own, made for this run, which the
// registration vouches for.
type hook struct {
	guard    *guard.Guard
	listener net.Listener
	server   *server
	url      string
	ca       []byte
}

func newHook(ctx context.Context, cfg Config, g *guard.Guard) (*hook, error) {
	l, o, err := listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	h := &hook{guard: g, listener: l, url: strings.TrimRight(cfg.Reached, "/")}
	if h.url == "" {
		h.url = "https://" + l.Addr().String()
	}
	u, err := url.Parse(h.url)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || net.ParseIP(u.Hostname()).IsUnspecified() {
		h.close()
		return nil, fmt.Errorf("%q is no URL under which the plane reaches admission; write https://HOST:PORT", h.url)
	}
	cert, ca, err := certificate(u.Hostname())
	if err != nil {
		h.close()
		return nil, err
	}
	h.ca = ca
	o.WebhookMux = http.NewServeMux()
	h.server = &server{Server: webhook.NewServer(o), mux: o.WebhookMux, listener: l, certificate: cert}
	return h, nil
}

func (h *hook) close() { _ = h.listener.Close() } // the server has closed it, if it ever ran

// register serves admission; the plane asks there once the Provider object says where that is.
func (h *hook) register(mgr ctrl.Manager) {
	checker := &ownadmission.Checker{Client: mgr.GetClient(), Providers: map[string]*guard.Guard{h.guard.Name(): h.guard}}
	mgr.GetWebhookServer().Register(hookPath, &admission.Webhook{Handler: checker.ValidateProvider(admission.NewDecoder(mgr.GetScheme()))})
}

// admission is where it is.
func (h *hook) admission() *v1alpha1.ProviderAdmission {
	return &v1alpha1.ProviderAdmission{URL: h.url + hookPath, CABundle: string(h.ca)}
}

// server serves on a listener that is open already, so that the port is known when it is registered.
type server struct {
	webhook.Server
	mux         *http.ServeMux
	listener    net.Listener
	certificate tls.Certificate
}

// Start serves until ctx ends.
func (s *server) Start(ctx context.Context) error {
	srv := &http.Server{Handler: s.mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // whatever is open is of an API server that asks again
	defer stop()
	err := srv.Serve(tls.NewListener(s.listener, &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12}))
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving admission: %w", err)
}

// NeedLeaderElection says that every process serves.
func (s *server) NeedLeaderElection() bool { return false }

// StartedChecker says that it always does.
func (s *server) StartedChecker() healthz.Checker { return healthz.Ping }

// certificate is one for a host, signed by itself.
func certificate(host string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "polder-provider"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
