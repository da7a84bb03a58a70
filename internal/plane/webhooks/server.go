// Package webhooks serves the admission and conversion webhooks of everything in the process.
// The API server is the only caller and reaches it over a unix socket in the data directory, so
// there is no port that anybody else could call.
package webhooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Config says where to listen and with which certificate.
type Config struct {
	Socket      string
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ErrorLog    *log.Logger
}

// Server is the one webhook server of the plane, as a component. Webhooks may be registered
// at any time; a path that nobody has registered yet answers 404, so admission fails closed.
type Server struct {
	cfg       Config
	mux       *http.ServeMux
	registrar webhook.Server // only its registration is used, never its listener
	ready     chan struct{}
}

// New prepares the server; nothing listens before Run.
func New(cfg Config) *Server {
	mux := http.NewServeMux()
	return &Server{
		cfg: cfg, mux: mux, registrar: webhook.NewServer(webhook.Options{WebhookMux: mux}), ready: make(chan struct{}),
	}
}

// Name is the component's name.
func (s *Server) Name() string { return "webhooks" }

// Ready closes when the socket is open.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("opening the webhook socket: %w", err)
	}
	srv := &http.Server{Handler: s.mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: s.cfg.ErrorLog}
	ended := make(chan error, 1)
	go func() {
		ended <- srv.Serve(tls.NewListener(l, &tls.Config{GetCertificate: s.cfg.Certificate, MinVersion: tls.VersionTLS12}))
	}()
	close(s.ready)
	select {
	case err := <-ended:
		return fmt.Errorf("serving webhooks: %w", err)
	case <-ctx.Done():
	}
	// The API server has stopped before us; whatever is still open is idle.
	err = srv.Close()
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	// A socket left by a killed process; the data directory's lock says that nobody listens.
	if err := os.Remove(s.cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "unix", s.cfg.Socket)
}

// Dial connects to the server, for the API server's webhook client.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", s.cfg.Socket)
}

// Healthy asks whether the server accepts connections.
func (s *Server) Healthy(ctx context.Context) error {
	c, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	return c.Close()
}

// ForManager returns the server as a controller manager needs it: webhooks can be registered, but starting and
// stopping stay with the supervisor.
func (s *Server) ForManager() webhook.Server { return managerServer{s} }

type managerServer struct{ s *Server }

var _ webhook.Server = managerServer{}

func (b managerServer) NeedLeaderElection() bool                { return false }
func (b managerServer) Register(path string, hook http.Handler) { b.s.registrar.Register(path, hook) }
func (b managerServer) WebhookMux() *http.ServeMux              { return b.s.mux }

func (b managerServer) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (b managerServer) StartedChecker() healthz.Checker {
	return func(r *http.Request) error { return b.s.Healthy(r.Context()) }
}
