package runtimehooks

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// hangUntilDone does not answer until its client goes away, which a server notices only once the body of the
// request is read.
func hangUntilDone(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// pipeListener is a listener in memory, so that a server can be part of a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// newPipedClient starts an extension server for synctest, and returns a client that is connected to it.
func newPipedClient(t *testing.T, f http.HandlerFunc) (*Client, *runtimev1.ExtensionConfig) {
	t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := newSilentServer(f)
	_ = srv.Listener.Close()
	srv.Listener = listener
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := newClient(t, func(c *Config) { c.Dial = listener.dial })
	return c, withServerCA(srv, extensionConfig("ext", srv.URL, "gate.ext"))
}

// newSilentServer returns a server that has not started and does not log the handshakes it refuses.
func newSilentServer(f http.HandlerFunc) *httptest.Server {
	srv := httptest.NewUnstartedServer(f)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	return srv
}

func TestClientConfig(t *testing.T) {
	port := int32(443)
	tests := map[string]struct {
		change func(*runtimev1.ClientConfig)
		want   string
	}{
		"service": {
			func(c *runtimev1.ClientConfig) {
				*c = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "a", Name: "b", Port: &port}}
			},
			"this plane has no Services: set url",
		},
		"url and service": {func(c *runtimev1.ClientConfig) { c.Service.Name = "b" }, "this plane has no Services: set url"},
		"no url":          {func(c *runtimev1.ClientConfig) { c.URL = "" }, "url is not set"},
		"not a url":       {func(c *runtimev1.ClientConfig) { c.URL = "https://a b" }, "invalid character"},
		"no scheme":       {func(c *runtimev1.ClientConfig) { c.URL = "ext.example.com" }, `url has scheme "", want https`},
		"plain http":      {func(c *runtimev1.ClientConfig) { c.URL = "http://127.0.0.1" }, `url has scheme "http", want https`},
		"no host":         {func(c *runtimev1.ClientConfig) { c.URL = "https:///path" }, "names no host"},
		"user":            {func(c *runtimev1.ClientConfig) { c.URL = "https://me:secret@127.0.0.1" }, "a host, a port and a path only"},
		"query":           {func(c *runtimev1.ClientConfig) { c.URL += "?timeout=1h" }, "a host, a port and a path only"},
		"fragment":        {func(c *runtimev1.ClientConfig) { c.URL += "#a" }, "a host, a port and a path only"},
		"caBundle":        {func(c *runtimev1.ClientConfig) { c.CABundle = []byte("none") }, "caBundle holds no PEM certificate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := startGateServer(t, answer(success))
			tt.change(&config.Spec.ClientConfig)
			config.Status.Handlers[0].FailurePolicy = runtimev1.FailurePolicyIgnore // does not cover this
			c := warmClient(t, config)
			_, err := c.Discover(t.Context(), config)
			checkError(t, err, tt.want)
			_, err = callGate(t.Context(), c, "gate.ext")
			checkError(t, err, tt.want)
		})
	}
}

func TestServerIsAuthenticated(t *testing.T) {
	tests := map[string]struct {
		prepare func(*httptest.Server)
		change  func(*runtimev1.ClientConfig)
		want    string
	}{
		"trusted": {},
		"TLS 1.2": {prepare: func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12} }},
		"TLS 1.1": {prepare: func(s *httptest.Server) {
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		}, want: "protocol version"},
		"no caBundle":    {change: func(c *runtimev1.ClientConfig) { c.CABundle = nil }, want: "unknown authority"},
		"wrong name":     {change: func(c *runtimev1.ClientConfig) { c.URL = "https://other.example.org" }, want: "certificate is valid for"},
		"does not speak": {change: func(c *runtimev1.ClientConfig) { c.URL = "https://refused.example.com" }, want: "address refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := newSilentServer(answer(success))
			if tt.prepare != nil {
				tt.prepare(srv)
			}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			config := withServerCA(srv, extensionConfig("ext", "https://ext.example.com", "gate.ext"))
			if tt.change != nil {
				tt.change(&config.Spec.ClientConfig)
			}
			c := newClient(t, func(c *Config) { c.Dial = dialOnly(srv) })
			warmUp(t, c, config)
			_, err := callGate(t.Context(), c, "gate.ext")
			checkError(t, err, tt.want)
		})
	}
}

// dialOnly connects all addresses but one to srv.
func dialOnly(srv *httptest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "refused.example.com:443" {
			return nil, errors.New("address refused")
		}
		var d net.Dialer
		return d.DialContext(ctx, network, srv.Listener.Addr().String())
	}
}

func TestClientCertificate(t *testing.T) {
	srv := newSilentServer(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			t.Error("no client certificate")
		}
		answer(success)(w, r)
	})
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	config := withServerCA(srv, extensionConfig("ext", srv.URL, "gate.ext"))

	anonymous := warmClient(t, config)
	_, err := callGate(t.Context(), anonymous, "gate.ext")
	checkError(t, err, "certificate required")

	known := newClient(t, func(c *Config) {
		c.ClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &srv.TLS.Certificates[0], nil }
	})
	warmUp(t, known, config)
	_, err = callGate(t.Context(), known, "gate.ext")
	checkError(t, err, "")
}
