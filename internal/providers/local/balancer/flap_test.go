package balancer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// A dial that ends well just after its backend was removed must not give a connection that
// nobody will ever cut.
func TestRemovalDuringDial(t *testing.T) {
	b := New(Config{})
	removed, stays := unusedAddress(t), startEchoBackend(t)
	dialling, answered := make(chan struct{}), make(chan net.Conn)
	plain := b.dial
	b.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != removed {
			return plain(ctx, network, address)
		}
		close(dialling)
		return <-answered, nil // ignores ctx, as a dial does in its last moment
	}
	at := serve(t, b)
	b.SetReady(removed)
	c := dial(t, at)
	<-dialling
	b.SetReady(stays)
	ours, theirs := net.Pipe()
	theirs.SetDeadline(time.Now().Add(testTimeout))
	answered <- ours
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the removed backend sees %v", err)
	}
	if got := c.readLine(t); got != stays {
		t.Errorf("connected to %s, want %s", got, stays)
	}
	c.checkEcho(t)
}

// The same a moment later: the dial is over and the relay has not begun.
func TestRemovalBeforeRelay(t *testing.T) {
	b := New(Config{})
	b.SetReady(startEchoBackend(t))
	ctx, l := b.connect(t.Context())
	b.SetReady()
	here, client := net.Pipe()
	client.SetDeadline(time.Now().Add(testTimeout))
	var wg sync.WaitGroup
	wg.Go(func() { Relay(ctx, here, l.server) })
	if _, err := io.ReadAll(client); err != nil {
		t.Errorf("the client sees %v", err)
	}
	client.Close()
	wg.Wait()
	if _, err := l.server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection to the backend is still open: %v", err)
	}
}

// traffic is many clients at once, each of which sends random bytes and wants them back.
type traffic struct {
	at     string
	stable string        // a backend that is never removed
	chunks chan struct{} // a hint now and then that bytes flow; sends never block

	completed, cut atomic.Int32
}

const transfer = 64 << 10

// runConnection makes one connection and counts how it ended.
func (tr *traffic) runConnection(t *testing.T) {
	c, err := tryDial(tr.at)
	if err != nil {
		tr.countCut(t, "", err) // so soon that connect(2) has seen it
		return
	}
	defer c.Close()
	backend, err := c.r.ReadString('\n')
	if err != nil {
		tr.countCut(t, "", err)
		return
	}
	var sent [transfer]byte
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	var wg sync.WaitGroup
	var sendErr error
	wg.Go(func() { sendErr = tr.send(c, sent[:]) })
	got, err := io.ReadAll(c.r)
	wg.Wait()
	// The kernel tells of a reset only once: to the reader or to the writer.
	if err := cmp.Or(err, sendErr); err != nil {
		tr.countCut(t, strings.TrimSpace(backend), err)
		return
	}
	tr.completed.Add(1)
	if !bytes.Equal(got, sent[:]) {
		t.Errorf("a connection ended without error but %d of %d bytes came back", len(got), len(sent))
	}
}

func (tr *traffic) send(c client, data []byte) error {
	for part := range slices.Chunk(data, 8<<10) {
		if _, err := c.Write(part); err != nil {
			return err
		}
		select {
		case tr.chunks <- struct{}{}:
		default:
		}
	}
	return c.CloseWrite()
}

func (tr *traffic) countCut(t *testing.T, backend string, err error) {
	tr.cut.Add(1)
	if backend == tr.stable {
		t.Errorf("a connection to a backend that was always ready ended: %v", err)
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a connection was not cut but ended: %v", err)
	}
}

// flap changes the ready set whenever bytes have flowed, until stop closes.
func (tr *traffic) flap(b *Balancer, stop <-chan struct{}, flapping ...string) {
	for {
		select {
		case <-stop:
			return
		case <-tr.chunks:
		}
		ready := []string{tr.stable}
		for _, f := range flapping {
			if rand.IntN(4) > 0 {
				ready = append(ready, f)
			}
		}
		b.SetReady(ready...)
	}
}

func TestFlappingBackendsLoseNothingUnnoticed(t *testing.T) {
	b := New(Config{BackendTimeout: testTimeout})
	tr := &traffic{at: serve(t, b), stable: startEchoBackend(t), chunks: make(chan struct{})}
	b.SetReady(tr.stable)
	stop := make(chan struct{})
	var flapper, clients sync.WaitGroup
	flapping := []string{startEchoBackend(t), startEchoBackend(t), unusedAddress(t)}
	flapper.Go(func() { tr.flap(b, stop, flapping...) })
	for range 40 {
		clients.Go(func() {
			for range 5 {
				tr.runConnection(t)
			}
		})
	}
	clients.Wait()
	close(stop)
	flapper.Wait()
	t.Logf("%d connections whole, %d cut", tr.completed.Load(), tr.cut.Load())
	if tr.completed.Load() == 0 || tr.cut.Load() == 0 {
		t.Errorf("%d connections whole, %d cut: this proves nothing", tr.completed.Load(), tr.cut.Load())
	}
	b.SetReady(tr.stable)
	processtest.Eventually(t, "all connections are gone", func() bool { return slices.Equal(connectionCounts(b), []int{0}) })
}
