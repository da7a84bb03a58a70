package clientcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// shownNames makes a server that answers with the name in the certificate it was shown, over HTTP/2 as an API server,
// and a configuration of a client of it.
func shownNames(t *testing.T) *rest.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func issueNamed(t *testing.T, name string, now time.Time) (tls.Certificate, error) {
	t.Helper()
	key, err := certificate.NewKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	c, err := certificate.SelfSign(&x509.Certificate{Subject: pkix.Name{CommonName: name}},
		certificate.Terms{SerialBits: 64, Now: now, Lifetime: 30 * time.Hour}, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}, nil
}

func ask(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b := make([]byte, 100)
	n, _ := res.Body.Read(b)
	return string(b[:n])
}

func TestRenew(t *testing.T) {
	cfg := shownNames(t)
	c := clocktesting.NewFakeClock(time.Now())
	names := []string{"first", "second"}
	renewed, err := Renew(t.Context(), cfg, c, func() (tls.Certificate, error) {
		if len(names) == 0 {
			return tls.Certificate{}, errors.New("no more")
		}
		name := names[0]
		names = names[1:]
		return issueNamed(t, name, c.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(renewed)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = 0
	if got := ask(t, client, cfg.Host); got != "first" {
		t.Fatalf("the server was shown %q", got)
	}
	ended := make(chan string, 1)
	go func() { ended <- ask(t, client, cfg.Host+"/watch") }()
	// Nobody connects, so only the watch over the clock can renew it.
	processtest.Eventually(t, "the certificate is renewed", func() bool {
		c.Step(CheckInterval)
		return ask(t, client, cfg.Host) == "second"
	})
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a connection with the old certificate is still there")
	}
	for range 60 { // another is due, but cannot be had
		c.Step(CheckInterval)
	}
	if got := ask(t, client, cfg.Host); got != "second" {
		t.Errorf("the server was shown %q", got)
	}
}

func TestRenewWithoutACertificate(t *testing.T) {
	fault := errors.New("no authority yet")
	_, err := Renew(t.Context(), &rest.Config{}, clocktesting.NewFakeClock(time.Now()), func() (tls.Certificate, error) { return tls.Certificate{}, fault })
	if !errors.Is(err, fault) {
		t.Errorf("error %v", err)
	}
}

// A server of another authority is not talked to, whoever we are.
func TestRenewChecksTheServer(t *testing.T) {
	cfg, other := shownNames(t), shownNames(t)
	other.Host, other.CAData = cfg.Host, []byte(pemOfAnother(t))
	renewed, err := Renew(t.Context(), other, clocktesting.NewFakeClock(time.Now()),
		func() (tls.Certificate, error) { return issueNamed(t, "a", time.Now()) })
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(renewed)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, client, cfg.Host); got == "a" {
		t.Error("it talked to a server that it cannot know")
	}
}

func pemOfAnother(t *testing.T) string {
	t.Helper()
	c, err := issueNamed(t, "other authority", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}
