// Package front is the door of the plane for customers: a listener of its own, on which nothing but what is meant for
// them is served. It has no rights in the plane.
package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/front/rest"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
)

// Bounds of a connection.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second // of an answer; one that streams has its own for each message
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	stopTimeout   = 3 * time.Second
	maxStreams    = 100 // requests at once on one connection
)

// Config says where the door is, and what is behind it. All fields without a comment are needed.
type Config struct {
	Listener    net.Listener
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Plane       func() http.RoundTripper // the plane's API; not asked before Run
	Namespace   func(tenant string) string
	Version     buildinfo.Info
	Clock       clock.WithTicker
	Log         *slog.Logger
	ErrorLog    *log.Logger
}

// Front is the door as a component of the plane.
type Front struct {
	cfg   Config
	ready chan struct{}
}

// New prepares the door. Requests wait until Run.
func New(cfg Config) *Front { return &Front{cfg: cfg, ready: make(chan struct{})} }

// Name is the component's name.
func (f *Front) Name() string { return "rest" }

// Ready closes when requests are served.
func (f *Front) Ready() <-chan struct{} { return f.ready }

// Run serves until ctx ends. Streams end with it; other requests have a moment to end.
func (f *Front) Run(ctx context.Context) error {
	api, err := rest.New(rest.Config{
		Plane: f.cfg.Plane(), Namespace: f.cfg.Namespace, Version: f.cfg.Version, Clock: f.cfg.Clock,
	})
	if err != nil {
		return fmt.Errorf("making the REST API: %w", err)
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	srv := &http.Server{
		Handler:           f.guard(api),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: f.cfg.ErrorLog,
		BaseContext: func(net.Listener) context.Context { return streams },
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig:   &tls.Config{GetCertificate: f.cfg.Certificate, MinVersion: tls.VersionTLS12},
	}
	srv.RegisterOnShutdown(endStreams)
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeTLS(newLimitedListener(f.cfg.Listener), "", "") }()
	close(f.ready)
	select {
	case err := <-ended:
		return fmt.Errorf("serving the REST API: %w", err)
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := srv.Shutdown(sctx); err != nil {
		_ = srv.Close() // whoever is still there has had time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// guard puts what is the same for all requests around the API.
func (f *Front) guard(api http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		rest.WriteProblem(w, http.StatusForbidden, "a page of another site may not ask for this")
	}))
	h := http.MaxBytesHandler(crossOrigin.Handler(api), rest.MaxBody+1) // the API says itself what is too large
	refuse := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1")
		rest.WriteProblem(w, http.StatusTooManyRequests, "too many requests at once from here; try again in a second")
	}
	h = limitRequests(newLimiter(f.cfg.Clock), refuse, limitBodies(refuse, h))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		defer f.recoverPanic(w, r)
		h.ServeHTTP(w, r)
	})
}

// recoverPanic makes an answer of a mistake of ours. The operator finds it in the log; the caller is told no more than
// that there is one.
func (f *Front) recoverPanic(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p) //nolint:forbidigo // how a handler breaks an answer off, also one that it has called
	default:
		f.cfg.Log.Error("a request to the REST API failed by a mistake in it", "method", r.Method, "path", r.URL.Path, "panic",
			p, "stack", string(debug.Stack()))
		rest.WriteProblem(w, http.StatusInternalServerError, "this went wrong by a mistake of ours; the operator finds it in the log")
	}
}
