package balancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// The delays after an accept that has failed for want of resources, doubled each time in a row.
const (
	initialAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay     = time.Second
)

// Serve accepts on l until ctx ends; it closes l and every connection, and returns after the
// last goroutine ended. A listener that fails is an error; one that only lacks resources for a
// moment, such as file descriptors, is asked again. Several listeners may be served at once:
// they share the ready set and the limit of connections.
func (b *Balancer) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Deferred calls run in reverse: cancel ends the goroutines that Wait waits for.
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		<-ctx.Done()
		_ = l.Close() // wakes Accept; there is nobody to tell of an error
	})
	var pause time.Duration
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			b.admit(ctx, conn, &wg)
		case ctx.Err() != nil:
			return nil
		case !isTemporary(err):
			return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
		default:
			if pause == 0 { // once per row of errors is enough
				b.cfg.Log.Warn("cannot accept for now", "address", l.Addr().String(), "error", err)
			}
			pause = min(max(2*pause, initialAcceptDelay), maxAcceptDelay)
			sleep(ctx, pause)
		}
	}
}

// admit gives conn a goroutine of its own, or closes it if there are too many. It never blocks.
func (b *Balancer) admit(ctx context.Context, conn net.Conn, wg *sync.WaitGroup) {
	ok, first := b.limiter.acquire()
	if first {
		b.cfg.Log.Warn("too many connections, closing new ones", "limit", b.cfg.MaxConnections)
	}
	if !ok {
		_ = conn.Close()
		return
	}
	wg.Go(func() {
		defer b.limiter.release()
		b.serveConnection(ctx, conn)
	})
}

// isTemporary says whether an error passes when others close what they have open, or concerns only the one connection
// that was about to be accepted.
func isTemporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
		syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
