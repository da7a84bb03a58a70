package balancer

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// testTimeout is how long a test waits for what should happen soon.
const testTimeout = 20 * time.Second

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve runs b on a listener until the test ends, and returns the listener's address.
func serve(t *testing.T, b *Balancer) string {
	t.Helper()
	l := listen(t)
	start(t, b, l)
	return l.Addr().String()
}

// start serves l until the test ends or the returned function is called, which waits.
func start(t *testing.T, b *Balancer, l net.Listener) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// startBackend starts an API server as a balancer sees it and returns its address. It runs handle for each connection
// and closes the connection afterwards.
func startBackend(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	l := listen(t)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(testTimeout))
				handle(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// startEchoBackend starts a backend that says its own address on a line and then sends back what it gets.
func startEchoBackend(t *testing.T) string {
	return startBackend(t, func(c *net.TCPConn) {
		io.WriteString(c, c.LocalAddr().String()+"\n")
		io.Copy(c, c)
	})
}

// unusedAddress is an address at which nobody listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l := listen(t)
	l.Close()
	return l.Addr().String()
}

// client is a connection with a reader on it.
type client struct {
	*net.TCPConn
	r *bufio.Reader
}

func dial(t *testing.T, address string) client {
	t.Helper()
	c, err := tryDial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryDial(address string) (client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return client{}, err
	}
	c.SetDeadline(time.Now().Add(testTimeout))
	return client{c.(*net.TCPConn), bufio.NewReader(c)}, nil
}

// readLine reads a line, which from a new connection to an echo backend is the backend's address.
func (c client) readLine(t *testing.T) string {
	t.Helper()
	s, err := c.r.ReadString('\n')
	if err != nil {
		t.Fatalf("reading a line: %v", err)
	}
	return strings.TrimSpace(s)
}

// checkEcho sends a line and wants it back.
func (c client) checkEcho(t *testing.T) {
	t.Helper()
	io.WriteString(c, "hello\n")
	if got := c.readLine(t); got != "hello" {
		t.Errorf("got %q back", got)
	}
}

// connectionCounts is the number of connections of each ready backend, in order.
func connectionCounts(b *Balancer) []int {
	var n []int
	for _, r := range b.State().Ready {
		n = append(n, r.Connections)
	}
	return n
}
