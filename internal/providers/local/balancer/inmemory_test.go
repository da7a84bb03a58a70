package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeListener is a listener in memory, for tests with a fake clock. Accept first returns its errors.
type fakeListener struct {
	errs   []error
	conns  chan net.Conn
	closed chan struct{}
}

func newFakeListener(errs ...error) *fakeListener {
	return &fakeListener{errs: errs, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *fakeListener) Accept() (net.Conn, error) {
	if len(h.errs) > 0 {
		err := h.errs[0]
		h.errs = h.errs[1:]
		return nil, err
	}
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *fakeListener) Close() error   { close(h.closed); return nil }
func (h *fakeListener) Addr() net.Addr { return &net.UnixAddr{Name: "hall", Net: "unix"} }

// connectClient gives one end of a pipe to Accept and returns the other, the client's.
func (h *fakeListener) connectClient() net.Conn {
	ours, theirs := net.Pipe()
	h.conns <- theirs
	return ours
}

// fakeBackends are the backends a, b, c, ... Each says its name and then nothing until it is closed. Those in down
// refuse connections; those in silent never answer.
type fakeBackends struct {
	mu           sync.Mutex
	down, silent string
}

func (w *fakeBackends) clearDown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = ""
}

func (w *fakeBackends) failureModes(name string) (down, silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.down, name), strings.Contains(w.silent, name)
}

func (w *fakeBackends) dial(ctx context.Context, _, name string) (net.Conn, error) {
	down, silent := w.failureModes(name)
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if down {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		io.WriteString(theirs, name)
		theirs.Read(make([]byte, 1))
	}()
	return ours, nil
}

// readFirst returns what the client reads first, "" if it is closed, and how long that took.
func readFirst(c net.Conn) (string, time.Duration) {
	begin := time.Now()
	buf := make([]byte, 16)
	n, _ := c.Read(buf)
	return string(buf[:n]), time.Since(begin)
}

func TestWaiting(t *testing.T) {
	tests := map[string]struct {
		ready        []string
		down, silent string
		after        func(*Balancer, *fakeBackends) // three seconds later
		want         string
		took         time.Duration
	}{
		"a backend becomes ready": {
			after: func(b *Balancer, _ *fakeBackends) { b.SetReady("a") }, want: "a", took: 3 * time.Second,
		},
		"none ever does": {
			took: 8 * time.Second,
		},
		"a ready one is down for ever": {
			ready: []string{"a"}, down: "a",
			took: 8 * time.Second,
		},
		"a ready one comes back unannounced": { // tried after 0.1, 0.3, 0.7, 1.5, 2.5 and 3.5 s
			ready: []string{"a"}, down: "a",
			after: func(_ *Balancer, w *fakeBackends) { w.clearDown() }, want: "a", took: 3500 * time.Millisecond,
		},
		"a ready one is down, another becomes ready": {
			ready: []string{"a"}, down: "a",
			after: func(b *Balancer, _ *fakeBackends) { b.SetReady("a", "b") }, want: "b", took: 3 * time.Second,
		},
		"a ready one is silent": {
			ready: []string{"a", "b"}, silent: "a",
			want: "b", took: 2 * time.Second,
		},
		"all are silent, and Hold counts for dialling too": {
			ready: []string{"a", "b", "c", "d", "e"}, silent: "abcde",
			took: 8 * time.Second,
		},
		"a silent one is removed": {
			ready: []string{"a"}, silent: "a",
			after: func(b *Balancer, _ *fakeBackends) { b.SetReady("b") }, want: "b", took: 3 * time.Second,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, h, w := New(Config{}), newFakeListener(), &fakeBackends{down: tt.down, silent: tt.silent}
				b.dial = w.dial
				stop := start(t, b, h)
				b.SetReady(tt.ready...)
				if tt.after != nil {
					time.AfterFunc(3*time.Second, func() { tt.after(b, w) })
				}
				got, took := readFirst(h.connectClient())
				if got != tt.want || took != tt.took {
					t.Errorf("got %q after %s, want %q after %s", got, took, tt.want, tt.took)
				}
				stop()
				if w := b.State().Waiting; w != 0 {
					t.Errorf("%d still wait", w)
				}
			})
		})
	}
}

func TestClientsThatLeaveWhileWaitingDoNotLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := New(Config{}), newFakeListener()
		start(t, b, h)
		for range 10 {
			h.connectClient().Close()
		}
		time.Sleep(8*time.Second + 1)
		b.limiter.mu.Lock()
		defer b.limiter.mu.Unlock()
		if b.limiter.active != 0 || b.State().Waiting != 0 {
			t.Errorf("%d inside, %d wait", b.limiter.active, b.State().Waiting)
		}
	})
}

func TestTooManyAreClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := New(Config{MaxConnections: 2}), newFakeListener()
		b.dial = new(fakeBackends).dial
		start(t, b, h)
		b.SetReady("a")
		first, second := h.connectClient(), h.connectClient()
		for _, c := range []net.Conn{first, second} {
			if got, _ := readFirst(c); got != "a" {
				t.Fatalf("got %q within the limit", got)
			}
		}
		if got, took := readFirst(h.connectClient()); got != "" || took != 0 {
			t.Errorf("got %q after %s above the limit", got, took)
		}
		first.Close()
		synctest.Wait()
		if got, _ := readFirst(h.connectClient()); got != "a" {
			t.Errorf("got %q when there is room again", got)
		}
	})
}

func TestTemporaryAcceptErrorsPauseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		for range 10 {
			errs = append(errs, &net.OpError{Op: "accept", Err: syscall.EMFILE})
		}
		b, h := New(Config{}), newFakeListener(errs...)
		b.dial = new(fakeBackends).dial
		start(t, b, h)
		b.SetReady("a")
		begin := time.Now()
		if got, _ := readFirst(h.connectClient()); got != "a" {
			t.Errorf("got %q", got)
		}
		if took, want := time.Since(begin), (5+10+20+40+80+160+320+640+1000+1000)*time.Millisecond; took != want {
			t.Errorf("accepted after %s, want %s", took, want)
		}
	})
}

// slowCloseConn is a connection whose first Close does what it should and then takes a second to return.
type slowCloseConn struct {
	net.Conn
	closes atomic.Int32
}

func (s *slowCloseConn) Close() error {
	err := s.Conn.Close()
	if s.closes.Add(1) == 1 {
		time.Sleep(time.Second)
	}
	return err
}

func TestServeWaitsForTheLast(t *testing.T) {
	tests := map[string]func(ctx context.Context) (net.Conn, error){
		"dial does not listen": func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil, ctx.Err()
		},
		"close takes long": func(context.Context) (net.Conn, error) {
			ours, _ := net.Pipe()
			return &slowCloseConn{Conn: ours}, nil
		},
	}
	for name, dial := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, h := New(Config{}), newFakeListener()
				b.dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
				stop := start(t, b, h)
				b.SetReady("a")
				h.connectClient()
				synctest.Wait()
				begin := time.Now()
				stop()
				if took := time.Since(begin); took != time.Second {
					t.Errorf("Serve returned after %s", took)
				}
			})
		})
	}
}

func TestFailingListenerEndsServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeListener(syscall.EMFILE, syscall.EBADF)
		if err := New(Config{}).Serve(t.Context(), h); !errors.Is(err, syscall.EBADF) {
			t.Errorf("Serve() = %v", err)
		}
		<-h.closed
	})
}
