package balancer

import (
	"context"
	"net"
	"time"
)

// The delays before ready backends that did not answer are tried again, doubled each time. One
// may come back, after a restart for instance, before anybody noticed that it was away.
const (
	initialRetryDelay = 100 * time.Millisecond
	maxRetryDelay     = time.Second
)

// backendConn is a claim whose backend has answered, with the connection to it.
type backendConn struct {
	claim  *claim
	server net.Conn
}

// serveConnection finds a backend for client and relays until either is done. It owns client.
func (b *Balancer) serveConnection(ctx context.Context, client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing to lose
	ctx, l := b.connect(ctx)
	if l == nil {
		b.cfg.Log.Debug("no backend for a connection", "client", client.RemoteAddr().String(), "after",
			b.cfg.BackendTimeout.String())
		return
	}
	defer b.pool.release(l.claim)
	Relay(ctx, client, l.server)
}

// connect finds a backend, waiting for one if need be. The context it returns ends when the backend leaves the ready
// set; the connection is the caller's to close and its claim the caller's to release. It is nil if BackendTimeout or
// ctx is over.
func (b *Balancer) connect(ctx context.Context) (context.Context, *backendConn) {
	waitCtx, stop := context.WithTimeout(ctx, b.cfg.BackendTimeout)
	defer stop()
	deadline, _ := waitCtx.Deadline()
	for pause := initialRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		// Not waitCtx: the connection outlives the time that may be spent on finding a backend.
		connCtx, l, changed := b.dialAny(ctx, deadline)
		if l != nil {
			return connCtx, l
		}
		if !b.waitForRetry(waitCtx, changed, pause) {
			return ctx, nil
		}
	}
}

// dialAny tries each ready backend once, the least busy first, and returns as connect does. If
// none answers, the channel closes at the first change of the ready set this round has not seen.
func (b *Balancer) dialAny(ctx context.Context, deadline time.Time) (context.Context, *backendConn, <-chan struct{}) {
	tried := map[*backend]bool{}
	for {
		connCtx, cancel := context.WithCancel(ctx)
		c, changed := b.pool.claimBackend(tried, cancel)
		if c == nil {
			cancel()
			return ctx, nil, changed
		}
		tried[c.backend] = true
		server, err := b.dialOne(connCtx, c.backend.address, deadline)
		if err == nil {
			return connCtx, &backendConn{claim: c, server: server}, nil
		}
		b.cfg.Log.Debug("backend does not answer", "backend", c.backend.address, "error", err)
		b.pool.release(c)
	}
}

// dialOne dials within the time allowed. A backend that was removed meanwhile is an error even
// if it answered: the client has lost nothing yet and may as well get another one.
func (b *Balancer) dialOne(connCtx context.Context, address string, deadline time.Time) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(connCtx, deadline)
	defer cancel()
	ctx, cancelDial := context.WithTimeout(ctx, b.cfg.DialTimeout)
	defer cancelDial()
	server, err := b.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := connCtx.Err(); err != nil {
		resetConnection(server)
		return nil, err
	}
	return server, nil
}

// waitForRetry returns true when it is worth while to try again, false when waitCtx is over.
func (b *Balancer) waitForRetry(waitCtx context.Context, changed <-chan struct{}, pause time.Duration) bool {
	b.pool.addWaiting(1)
	defer b.pool.addWaiting(-1)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-waitCtx.Done():
		return false
	}
	return true
}
