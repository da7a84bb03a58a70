package world

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Timeouts of connections. Watches last longer, and end by themselves.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Run serves all clusters at one port, 0 being any, until ctx ends.
func (w *World) Run(ctx context.Context, port int) error {
	l, err := (&net.ListenConfig{Control: onLoopback}).Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return fmt.Errorf("listening for the clients of instant clusters: %w", err)
	}
	w.port = int32(l.Addr().(*net.TCPAddr).Port)
	close(w.listening)
	server := &http.Server{
		Handler: w, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		TLSConfig:   &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: w.tlsConfigFor},
		ErrorLog:    log.New(io.Discard, "", 0), // clients of clusters that are gone
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the clients of instant clusters: %w", err)
	}
	return nil
}

// tlsConfigFor returns the TLS configuration of the cluster that a client has connected to, by the address.
func (w *World) tlsConfigFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c := w.clusterAt(hello.Conn.LocalAddr())
	if c == nil {
		return nil, errors.New("there is no cluster at this address")
	}
	if w.silent.has(c.name) {
		w.silent.wait(awaitClose(hello.Context(), hello.Conn), c.name)
		return nil, errors.New("the cluster was silent for too long")
	}
	return c.tlsConfig, nil
}

// ServeHTTP answers for the cluster the request was sent to.
func (w *World) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	c := w.clusterAt(local)
	switch {
	case c == nil:
		writeStatus(rw, http.StatusNotFound, "NotFound", "this cluster is gone")
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		writeStatus(rw, http.StatusUnauthorized, "Unauthorized", "a client certificate of this cluster's authority is needed")
	default:
		w.silent.wait(r.Context(), c.name)
		c.store.ServeHTTP(rw, r)
	}
}
