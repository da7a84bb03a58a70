// Package inprocess sends requests to a handler of the same process, as if it were reached by a network: without
// sockets, TLS and a second parsing of everything.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Transport is a http.RoundTripper whose other end is a handler.
type Transport struct {
	Handler http.Handler
}

var _ http.RoundTripper = Transport{}

type addressKey struct{}

// WithRemoteAddr says for whom requests are sent, so that the handler, and what it records, sees that address.
func WithRemoteAddr(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// RoundTrip calls the handler and returns as soon as it has begun to answer. The rest of the answer is read while the
// handler writes it. Closing the body ends the handler's context.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.Host = r.URL.RequestURI(), r.URL.Host
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	in.RemoteAddr, _ = ctx.Value(addressKey{}).(string)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, pipe := io.Pipe()
	w := &writer{ctx: ctx, header: http.Header{}, pipe: pipe, begun: make(chan struct{})}
	go func() {
		err := serve(t.Handler, w, in)
		_ = in.Body.Close()
		w.WriteHeader(http.StatusOK) // unless it has written one
		_ = pipe.CloseWithError(err) // io.EOF for the reader if there is none
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		_ = body.CloseWithError(ctx.Err()) // the handler may not wait for a reader
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: in.Proto, ProtoMajor: in.ProtoMajor,
		Header: w.sent, Body: closer{body, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// serve returns the panic of a handler, with which it breaks an answer off, as an error.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errors.New("the answer was broken off")
		default:
			err = fmt.Errorf("the handler failed: %v", p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// writer is what the handler writes to.
type writer struct {
	ctx    context.Context //nolint:containedctx // that of one request
	header http.Header
	pipe   *io.PipeWriter

	once  sync.Once
	begun chan struct{} // closed when what follows is set
	code  int
	sent  http.Header
}

var (
	_ http.Flusher       = (*writer)(nil)
	_ http.CloseNotifier = (*writer)(nil) //nolint:staticcheck // Kubernetes streams to nothing else
)

// Header returns the header to be sent, as http.ResponseWriter has it.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader begins the answer; later calls do nothing.
func (w *writer) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.begun)
	})
}

// Write waits for the reader.
func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

// Flush has nothing to do but to begin: nothing is kept back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify tells when nobody reads any more.
func (w *writer) CloseNotify() <-chan bool {
	c := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { c <- true })
	return c
}

type closer struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the request.
func (c closer) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}
