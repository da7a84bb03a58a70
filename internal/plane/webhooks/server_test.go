package webhooks

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// start serves on a socket and returns a client that dials it.
func start(t *testing.T) (*Server, *http.Client) {
	t.Helper()
	tlsServer := httptest.NewUnstartedServer(nil) // only for its certificate
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	dir, err := os.MkdirTemp("", "wh-") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	if err := os.WriteFile(socket, []byte("left by a killed process"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert := tlsServer.TLS.Certificates[0]
	s := New(Config{Socket: socket, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }, ErrorLog: log.New(io.Discard, "", 0)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
		if err := s.Healthy(context.Background()); err == nil {
			t.Error("it still accepts connections")
		}
	})
	c := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
	}}
	return s, c
}

func code(t *testing.T, c *http.Client, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://any"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func TestServesWhatIsRegistered(t *testing.T) {
	s, c := start(t)
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy() = %v", err)
	}
	if got := code(t, c, "/late"); got != http.StatusNotFound {
		t.Errorf("before it is registered: %d; admission must fail closed", got)
	}
	// Managers register after the server runs, and may neither start nor stop it.
	m := s.ForManager()
	m.Register("/late", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(ctx); err != nil {
		t.Errorf("Start() = %v", err)
	}
	if got := code(t, c, "/late"); got != http.StatusTeapot {
		t.Errorf("after: %d", got)
	}
	if err := m.StartedChecker()(httptest.NewRequest(http.MethodGet, "/", http.NoBody)); err != nil {
		t.Errorf("StartedChecker() = %v", err)
	}
}
