package balancer

import (
	"context"
	"net"
	"time"
)

// The pauses before ready backends that did not answer are tried again, doubled each time. One
// may come back, after a restart for instance, before anybody noticed that it was away.
const (
	firstRetryPause = 100 * time.Millisecond
	maxRetryPause   = time.Second
)

// link is a claim whose backend has answered.
type link struct {
	claim  *claim
	server net.Conn
}

// carry finds a backend for client and relays until either is done. It owns client.
func (b *Balancer) carry(ctx context.Context, client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing to lose
	ctx, l := b.connect(ctx)
	if l == nil {
		b.cfg.Log.Debug("no backend for a connection", "client", client.RemoteAddr().String(), "after", b.cfg.Hold.String())
		return
	}
	defer b.pool.release(l.claim)
	relay(ctx, client, l.server)
}

// connect finds a backend, waiting for one if need be. The context it returns ends when the
// backend leaves the ready set; the link is the caller's to close and to release. The link is nil
// if Hold or ctx is over.
func (b *Balancer) connect(ctx context.Context) (context.Context, *link) {
	hold, stop := context.WithTimeout(ctx, b.cfg.Hold)
	defer stop()
	until, _ := hold.Deadline()
	for pause := firstRetryPause; ; pause = min(2*pause, maxRetryPause) {
		linked, l, changed := b.dialAny(ctx, until)
		if l != nil {
			return linked, l
		}
		if !b.await(hold, changed, pause) {
			return ctx, nil
		}
	}
}

// dialAny tries each ready backend once, the least busy first, and returns as connect does. If
// none answers, the channel closes at the first change of the ready set this round has not seen.
func (b *Balancer) dialAny(ctx context.Context, until time.Time) (context.Context, *link, <-chan struct{}) {
	tried := map[*backend]bool{}
	for {
		linked, cut := context.WithCancel(ctx)
		c, changed := b.pool.claim(tried, cut)
		if c == nil {
			cut()
			return ctx, nil, changed
		}
		tried[c.on] = true
		server, err := b.dialOne(linked, c.on.address, until)
		if err == nil {
			return linked, &link{claim: c, server: server}, nil
		}
		b.cfg.Log.Debug("backend does not answer", "backend", c.on.address, "error", err)
		b.pool.release(c)
	}
}

// dialOne dials within the time allowed. A backend that was removed meanwhile is an error even
// if it answered: the client has lost nothing yet and may as well get another one.
func (b *Balancer) dialOne(linked context.Context, address string, until time.Time) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(linked, min(b.cfg.DialTimeout, time.Until(until)))
	defer cancel()
	server, err := b.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := linked.Err(); err != nil {
		abort(server)
		return nil, err
	}
	return server, nil
}

// await returns true when it is worth while to try again, false when hold is over.
func (b *Balancer) await(hold context.Context, changed <-chan struct{}, pause time.Duration) bool {
	b.pool.wait(1)
	defer b.pool.wait(-1)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-hold.Done():
		return false
	}
	return true
}
