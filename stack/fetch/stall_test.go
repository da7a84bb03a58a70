package fetch_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/polder-kaas/polder/stack/fetch"
)

// A server that keeps us waiting is given up after the limit, whatever little it sends; an honest one on a slow link is
// not. All runs in a bubble, so that no time passes.
func TestStall(t *testing.T) {
	const kib = 1 << 10
	for name, tc := range map[string]struct {
		size, chunk int
		every       time.Duration
		header      time.Duration // before anything is answered
		gaveUp      time.Duration // 0 if it is read whole
	}{
		"one byte per second":     {size: 100 * kib, chunk: 1, every: time.Second, gaveUp: 20 * time.Second},
		"one byte, then nothing":  {size: 100 * kib, chunk: 1, every: time.Hour, gaveUp: 20 * time.Second},
		"a fifth of a KiB":        {size: 100 * kib, chunk: 100, every: time.Second, gaveUp: 20 * time.Second},
		"no header":               {size: 1, chunk: 1, header: time.Hour, gaveUp: 20 * time.Second},
		"1 KiB per second":        {size: 50 * kib, chunk: kib, every: time.Second},
		"4 KiB in fits":           {size: 12 * kib, chunk: 4 * kib, every: 19 * time.Second},
		"a short one, slowly":     {size: 10, chunk: 1, every: 1500 * time.Millisecond},
		"a header that took time": {size: 10, chunk: 10, header: 19 * time.Second},
		"a slow end":              {size: 4*kib + 10, chunk: 2055, every: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				handler := func(w http.ResponseWriter, r *http.Request) {
					pause(r, tc.header)
					for left := tc.size; left > 0 && r.Context().Err() == nil; left -= tc.chunk {
						_, _ = io.WriteString(w, strings.Repeat("x", min(left, tc.chunk)))
						_ = http.NewResponseController(w).Flush()
						pause(r, tc.every)
					}
				}
				c := bubbleClient(t, handler)
				b, err := c.Get(t.Context(), "http://registry.test/", 1<<20)
				took := time.Since(began)
				switch {
				case tc.gaveUp == 0 && (err != nil || len(b) != tc.size):
					t.Errorf("%d of %d bytes after %s: %v", len(b), tc.size, took, err)
				case tc.gaveUp > 0 && (err == nil || took < tc.gaveUp || took > tc.gaveUp+2*time.Second):
					t.Errorf("after %s: %v", took, err)
				case tc.gaveUp > 0 && tc.header == 0 && (!errors.Is(err, fetch.ErrStalled) ||
					err.Error() != "registry.test sends almost nothing any more, and was given up"):
					t.Error(err)
				}
			})
		})
	}
}

// Who reads slowly does not make the server slow.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleClient(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100)) })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.HTTP().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		one := make([]byte, 1)
		for range 50 {
			if _, err := resp.Body.Read(one); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
	})
}

func pause(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

// bubbleClient is a client and its server in a bubble of synctest, where only pipes work.
func bubbleClient(t *testing.T, h http.HandlerFunc) *fetch.Client {
	l := pipeListener{accept: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	c := fetch.New(fetch.Policy{Trusted: []string{"registry.test"}, PlainHTTP: true}, fetch.Limits{})
	fetch.DialWith(c, func() (net.Conn, error) {
		client, server := net.Pipe()
		l.accept <- server
		return client, nil
	})
	t.Cleanup(func() { c.HTTP().CloseIdleConnections(); _ = s.Close(); <-done })
	return c
}

type pipeListener struct {
	accept chan net.Conn
	closed chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
