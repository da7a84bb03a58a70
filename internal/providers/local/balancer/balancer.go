// Package balancer is the TCP balancer in front of the API servers of one cluster. It looks at
// no byte of what it carries: TLS is between the client and the API server. Which backends are
// ready is for its caller to find out and to say with SetReady.
package balancer

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Config of a balancer; the zero value of each field is usable.
type Config struct {
	// BackendTimeout is how long a new connection may wait for a backend before it is closed. 0: eight seconds.
	BackendTimeout time.Duration
	// DialTimeout bounds one attempt to reach one backend. 0: two seconds.
	DialTimeout time.Duration
	// MaxConnections counts waiting connections too; more are closed at once. 0: 4096.
	MaxConnections int
	// Log gets changes of the ready set and errors. nil: nothing is logged.
	Log *slog.Logger
}

// Balancer carries connections to ready backends. All its methods may be called at any time and
// from any goroutine; the ready set is empty until SetReady.
type Balancer struct {
	cfg     Config
	pool    *pool
	limiter connectionLimiter
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// State is a snapshot of the backends and of the connections that wait for one.
type State struct {
	Ready    []BackendState // in the order of SetReady
	Draining []BackendState
	Waiting  int // connections for which there is no backend that answers
}

// BackendState is one backend and how many connections it has, those being dialled included.
type BackendState struct {
	Address     string
	Connections int
}

// New prepares a balancer; nothing runs before Serve.
func New(cfg Config) *Balancer {
	cfg.BackendTimeout = orDefault(cfg.BackendTimeout, 8*time.Second)
	cfg.DialTimeout = orDefault(cfg.DialTimeout, 2*time.Second)
	cfg.MaxConnections = orDefault(cfg.MaxConnections, 4096)
	cfg.Log = orDefault(cfg.Log, slog.New(slog.DiscardHandler))
	var d net.Dialer
	return &Balancer{cfg: cfg, pool: newPool(), limiter: connectionLimiter{limit: cfg.MaxConnections}, dial: d.DialContext}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// SetReady replaces the set of ready backends (host:port); an address given twice counts once.
// Connections to a backend that is no longer in the set are cut at once, because a client must
// not hang on a dead server: both ends see a reset, so that nobody takes a stream that was cut
// for a whole one. Waiting connections try the new set at once, even if it equals the old one.
func (b *Balancer) SetReady(addresses ...string) { b.SetBackends(addresses, nil) }

// SetBackends is SetReady with backends that are about to end: those that were ready keep the connections they have, so
// that requests can finish, and get no new ones. A draining address that was no backend before is ignored.
func (b *Balancer) SetBackends(ready, draining []string) {
	added, removed, cut := b.pool.setBackends(ready, draining)
	if len(added)+len(removed) > 0 {
		b.cfg.Log.Info("ready backends changed", "added", added, "removed", removed, "connections cut", cut)
	}
}

// State says what is ready, how busy it is, and how many wait.
func (b *Balancer) State() State { return b.pool.state() }
