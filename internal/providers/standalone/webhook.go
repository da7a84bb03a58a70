package standalone

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
	ownadmission "github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

const webhookPath = "/validate-workloadcluster"

// certificateLifetime is longer than any process runs; each process makes a new certificate.
const certificateLifetime = 10 * 365 * 24 * time.Hour

// admissionWebhook is the provider's admission webhook. It serves with a self-signed certificate, made for this
// run, which is in the Provider object. The plane knows that of the leader alone, so no other process of the
// provider serves.
type admissionWebhook struct {
	guard  *guard.Guard
	server *server
	url    string
	ca     []byte
}

// newAdmissionWebhook opens the port, so that a port that is taken is reported at once. A port that was asked for
// is closed again until this process leads; any other is kept open, since it is written into the Provider object,
// and nobody else can ask for it.
func newAdmissionWebhook(ctx context.Context, cfg Config, g *guard.Guard) (*admissionWebhook, error) {
	l, o, err := listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	o.WebhookMux = http.NewServeMux()
	s := &server{Server: webhook.NewServer(o), mux: o.WebhookMux, address: cfg.Listen, listener: l}
	h := &admissionWebhook{guard: g, server: s, url: strings.TrimRight(cfg.PublicURL, "/")}
	if h.url == "" {
		h.url = "https://" + l.Addr().String()
	}
	if _, port, err := net.SplitHostPort(cfg.Listen); err == nil && port != "0" {
		h.close()
		s.listener = nil
	}
	u, err := url.Parse(h.url)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" ||
		net.ParseIP(u.Hostname()).IsUnspecified() {
		h.close()
		return nil, fmt.Errorf("%q is no URL under which the plane reaches admission; write https://HOST:PORT", h.url)
	}
	if s.certificate, h.ca, err = newCertificate(u.Hostname(), clock.RealClock{}.Now()); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *admissionWebhook) close() {
	if h.server.listener != nil {
		_ = h.server.listener.Close() // the server has closed it, if it ever ran
	}
}

// register adds the handler; the plane calls it once the Provider object says where it is.
func (h *admissionWebhook) register(mgr ctrl.Manager) {
	h.server.elected = mgr.Elected()
	checker := &ownadmission.Checker{Client: mgr.GetClient(), Providers: map[string]*guard.Guard{h.guard.Name(): h.guard}}
	validate := checker.ValidateProvider(admission.NewDecoder(mgr.GetScheme()))
	mgr.GetWebhookServer().Register(webhookPath, &admission.Webhook{
		Handler: unreadable.MendOldObject(mgr.GetScheme(), validate, admissionv1.Update),
	})
}

// providerAdmission is what the Provider object says about the webhook.
func (h *admissionWebhook) providerAdmission() *v1alpha1.ProviderAdmission {
	return &v1alpha1.ProviderAdmission{URL: h.url + webhookPath, CABundle: string(h.ca)}
}

// server is a webhook server that serves once this process leads.
type server struct {
	webhook.Server
	mux         *http.ServeMux
	address     string
	listener    net.Listener // nil if it is to be opened then
	certificate tls.Certificate
	elected     <-chan struct{}
}

// Start serves until ctx ends. Until this process leads, nobody can connect: whoever checks from outside which of
// several processes is ready finds the one that the plane knows.
func (s *server) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.elected:
	}
	l := s.listener
	if l == nil {
		var err error
		if l, _, err = listen(ctx, s.address); err != nil {
			return err
		}
	}
	srv := &http.Server{Handler: s.mux, ReadHeaderTimeout: 10 * time.Second}
	// open connections are those of an API server, which retries
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12,
	}))
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving admission: %w", err)
}

// NeedLeaderElection is not asked of a manager's webhook server, which is started in every process; so Start
// waits.
func (s *server) NeedLeaderElection() bool { return false }

// StartedChecker always reports that the server has started, since it may wait for its election.
func (s *server) StartedChecker() healthz.Checker { return healthz.Ping }

// newCertificate makes a self-signed certificate for a host.
func newCertificate(host string, now time.Time) (tls.Certificate, []byte, error) {
	key, err := certificate.NewKey()
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "polder-provider"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	terms := certificate.Terms{SerialBits: 127, Now: now, Backdate: 2 * time.Hour, Lifetime: certificateLifetime}
	c, err := certificate.SelfSign(t, terms, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}, certificate.Encode(c), nil
}
