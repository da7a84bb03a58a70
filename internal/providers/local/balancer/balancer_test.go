package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func TestFewestConnectionsFirst(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	x, y, z := startEchoBackend(t), startEchoBackend(t), startEchoBackend(t)
	b.SetReady(x, y, z, x)
	open := map[string][]client{}
	for range 6 {
		c := dial(t, at)
		address := c.readLine(t)
		open[address] = append(open[address], c)
	}
	want := State{Ready: []BackendState{{x, 2}, {y, 2}, {z, 2}}}
	if diff := cmp.Diff(want, b.State()); diff != "" {
		t.Fatalf("State() (-want +got):\n%s", diff)
	}
	for _, c := range open[y] {
		c.Close()
	}
	processtest.Eventually(t, "connections of the second backend are gone", func() bool { return slices.Equal(connectionCounts(b), []int{2, 0, 2}) })
	for range 2 {
		if got := dial(t, at).readLine(t); got != y {
			t.Errorf("connected to %s although %s has fewer connections", got, y)
		}
	}
}

func TestTiesRotate(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	ready := []string{startEchoBackend(t), startEchoBackend(t), startEchoBackend(t)}
	b.SetReady(ready...)
	var got []string
	for range 6 {
		c := dial(t, at)
		got = append(got, c.readLine(t))
		c.Close()
		processtest.Eventually(t, "all backends are idle", func() bool { return slices.Equal(connectionCounts(b), []int{0, 0, 0}) })
	}
	if diff := cmp.Diff(append(ready, ready...), got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestRemovalCuts(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	ended := make(chan error, 2)
	gone := startBackend(t, func(c *net.TCPConn) {
		io.WriteString(c, "gone\n")
		_, err := c.Read(make([]byte, 1))
		ended <- err
	})
	b.SetReady(gone)
	victim := dial(t, at)
	victim.readLine(t)
	stays := startEchoBackend(t)
	b.SetReady(stays, gone)
	other := dial(t, at)
	if got := other.readLine(t); got != stays {
		t.Fatalf("connected to %s, want %s", got, stays)
	}
	b.SetReady(stays)
	if _, err := victim.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client of the removed backend sees %v", err)
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the removed backend sees %v", err)
	}
	other.checkEcho(t)
}

func TestDrainingKeepsWhatItHas(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	leaving, stays := startEchoBackend(t), startEchoBackend(t)
	b.SetReady(leaving)
	old := dial(t, at)
	old.readLine(t)
	b.SetBackends([]string{stays}, []string{leaving})
	for range 3 {
		if got := dial(t, at).readLine(t); got != stays {
			t.Errorf("a new connection went to %s, which is draining", got)
		}
	}
	old.checkEcho(t)
	if diff := cmp.Diff([]BackendState{{leaving, 1}}, b.State().Draining); diff != "" {
		t.Errorf("draining (-want +got):\n%s", diff)
	}
	b.SetBackends([]string{stays}, nil)
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after draining the old client sees %v", err)
	}
}

func TestFailingBackendIsSkipped(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	alive := startEchoBackend(t)
	b.SetReady(unusedAddress(t), alive, unusedAddress(t))
	for range 5 {
		if got := dial(t, at).readLine(t); got != alive {
			t.Errorf("connected to %s", got)
		}
	}
	if diff := cmp.Diff([]int{0, 5, 0}, connectionCounts(b)); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
}

func TestHalfClose(t *testing.T) {
	t.Run("client ends first", func(t *testing.T) {
		b := New(Config{})
		dialled := make(chan net.Conn, 1)
		plain := b.dial
		b.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := plain(ctx, network, address)
			dialled <- c
			return c, err
		}
		at := serve(t, b)
		b.SetReady(startBackend(t, func(c *net.TCPConn) {
			all, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("the backend sees %v", err)
			}
			io.WriteString(c, strings.ToUpper(string(all)))
		}))
		c := dial(t, at)
		io.WriteString(c, "question")
		c.CloseWrite()
		got, err := io.ReadAll(c)
		if string(got) != "QUESTION" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		c.Close()
		processtest.Eventually(t, "the connection is gone", func() bool { return slices.Equal(connectionCounts(b), []int{0}) })
		if _, err := (<-dialled).Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection to the backend was ended but not closed: %v", err)
		}
	})
	t.Run("backend ends first", func(t *testing.T) {
		b := New(Config{})
		at := serve(t, b)
		rest := make(chan string, 1)
		b.SetReady(startBackend(t, func(c *net.TCPConn) {
			io.WriteString(c, "answer")
			c.CloseWrite()
			all, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("the backend sees %v", err)
			}
			rest <- string(all)
		}))
		c := dial(t, at)
		got, err := io.ReadAll(c)
		if string(got) != "answer" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		io.WriteString(c, "thanks")
		c.CloseWrite()
		if got := <-rest; got != "thanks" {
			t.Errorf("the backend got %q", got)
		}
	})
}

func TestResetIsPassedOn(t *testing.T) {
	b := New(Config{})
	at := serve(t, b)
	b.SetReady(startBackend(t, func(c *net.TCPConn) {
		io.WriteString(c, "hello\n")
		c.Read(make([]byte, 1))
		c.SetLinger(0)
	}))
	c := dial(t, at)
	c.readLine(t)
	io.WriteString(c, "x")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v", err)
	}
}

func TestServeLeavesNothingBehind(t *testing.T) {
	b := New(Config{})
	var refuse atomic.Bool
	plain := b.dial
	b.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if refuse.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return plain(ctx, network, address)
	}
	l := listen(t)
	stop := start(t, b, l)
	at := l.Addr().String()
	b.SetReady(startBackend(t, func(c *net.TCPConn) { // never reads, never ends by itself
		io.WriteString(c, "stuck\n")
		<-t.Context().Done()
	}))
	idle, half := dial(t, at), dial(t, at)
	idle.readLine(t)
	half.readLine(t)
	half.CloseWrite()
	refuse.Store(true)
	waiting := dial(t, at)
	processtest.Eventually(t, "one waits", func() bool { return b.State().Waiting == 1 })
	stop()
	for name, c := range map[string]client{"idle": idle, "half closed": half, "waiting": waiting} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s connection is still open: %v", name, err)
		}
	}
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Error("the listener is still open")
	}
	if diff := cmp.Diff([]int{0}, connectionCounts(b)); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
	// Each goroutine has said that it is done, but may be a few instructions from its end.
	processtest.Eventually(t, "no goroutine is left", func() bool { return !slices.ContainsFunc(goroutineStacks(), isBalancerStack) })
}

// goroutineStacks returns the stacks of all goroutines.
func goroutineStacks() []string {
	buf := make([]byte, 1<<20)
	return strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
}

// isBalancerStack says whether a goroutine is the balancer's.
func isBalancerStack(stack string) bool {
	return strings.Contains(stack, "/balancer.(*Balancer)") || strings.Contains(stack, "/balancer.relay")
}
