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

// hall is a listener in memory, for tests that own the clock. It first returns its errors.
type hall struct {
	errs   []error
	conns  chan net.Conn
	closed chan struct{}
}

func newHall(errs ...error) *hall {
	return &hall{errs: errs, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *hall) Accept() (net.Conn, error) {
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

func (h *hall) Close() error   { close(h.closed); return nil }
func (h *hall) Addr() net.Addr { return &net.UnixAddr{Name: "hall", Net: "unix"} }

// enter connects a client.
func (h *hall) enter() net.Conn {
	ours, theirs := net.Pipe()
	h.conns <- theirs
	return ours
}

// town is where the backends a, b, c, ... live. They say their name and then nothing until they
// are closed. Those in down refuse; those in silent do not even do that.
type town struct {
	mu           sync.Mutex
	down, silent string
}

func (w *town) repair() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = ""
}

func (w *town) lookup(name string) (down, silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.down, name), strings.Contains(w.silent, name)
}

func (w *town) dial(ctx context.Context, _, name string) (net.Conn, error) {
	down, silent := w.lookup(name)
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

// outcome reads what the client is told first, "" if it is closed, and how long that took.
func outcome(c net.Conn) (string, time.Duration) {
	begin := time.Now()
	buf := make([]byte, 16)
	n, _ := c.Read(buf)
	return string(buf[:n]), time.Since(begin)
}

func TestWaiting(t *testing.T) {
	tests := map[string]struct {
		ready        []string
		down, silent string
		after        func(*Balancer, *town) // three seconds later
		want         string
		took         time.Duration
	}{
		"a backend becomes ready": {
			after: func(b *Balancer, _ *town) { b.SetReady("a") }, want: "a", took: 3 * time.Second,
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
			after: func(_ *Balancer, w *town) { w.repair() }, want: "a", took: 3500 * time.Millisecond,
		},
		"a ready one is down, another becomes ready": {
			ready: []string{"a"}, down: "a",
			after: func(b *Balancer, _ *town) { b.SetReady("a", "b") }, want: "b", took: 3 * time.Second,
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
			after: func(b *Balancer, _ *town) { b.SetReady("b") }, want: "b", took: 3 * time.Second,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, h, w := New(Config{}), newHall(), &town{down: tt.down, silent: tt.silent}
				b.dial = w.dial
				stop := start(t, b, h)
				b.SetReady(tt.ready...)
				if tt.after != nil {
					time.AfterFunc(3*time.Second, func() { tt.after(b, w) })
				}
				got, took := outcome(h.enter())
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
		b, h := New(Config{}), newHall()
		start(t, b, h)
		for range 10 {
			h.enter().Close()
		}
		time.Sleep(8*time.Second + 1)
		b.gate.mu.Lock()
		defer b.gate.mu.Unlock()
		if b.gate.inside != 0 || b.State().Waiting != 0 {
			t.Errorf("%d inside, %d wait", b.gate.inside, b.State().Waiting)
		}
	})
}

func TestTooManyAreClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, h := New(Config{MaxConnections: 2}), newHall()
		b.dial = new(town).dial
		start(t, b, h)
		b.SetReady("a")
		first, second := h.enter(), h.enter()
		for _, c := range []net.Conn{first, second} {
			if got, _ := outcome(c); got != "a" {
				t.Fatalf("got %q within the limit", got)
			}
		}
		if got, took := outcome(h.enter()); got != "" || took != 0 {
			t.Errorf("got %q after %s above the limit", got, took)
		}
		first.Close()
		synctest.Wait()
		if got, _ := outcome(h.enter()); got != "a" {
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
		b, h := New(Config{}), newHall(errs...)
		b.dial = new(town).dial
		start(t, b, h)
		b.SetReady("a")
		begin := time.Now()
		if got, _ := outcome(h.enter()); got != "a" {
			t.Errorf("got %q", got)
		}
		if took, want := time.Since(begin), (5+10+20+40+80+160+320+640+1000+1000)*time.Millisecond; took != want {
			t.Errorf("accepted after %s, want %s", took, want)
		}
	})
}

// slow is a connection whose first Close does what it should and then takes a second to return.
type slow struct {
	net.Conn
	closes atomic.Int32
}

func (s *slow) Close() error {
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
			return &slow{Conn: ours}, nil
		},
	}
	for name, dial := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, h := New(Config{}), newHall()
				b.dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
				stop := start(t, b, h)
				b.SetReady("a")
				h.enter()
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
		h := newHall(syscall.EMFILE, syscall.EBADF)
		if err := New(Config{}).Serve(t.Context(), h); !errors.Is(err, syscall.EBADF) {
			t.Errorf("Serve() = %v", err)
		}
		<-h.closed
	})
}
