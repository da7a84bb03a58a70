package balancer

import "sync"

// connectionLimiter counts active connections and refuses those beyond its limit.
type connectionLimiter struct {
	limit int

	mu        sync.Mutex
	active    int
	rejecting bool // a connection was refused, and more than half of the limit has been in use since
}

// acquire says whether one more connection may be served, and whether this is the first refusal of a rush: a flood of
// connections must not become a flood of log lines.
func (g *connectionLimiter) acquire() (ok, firstRefusal bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active < g.limit {
		g.active++
		return true, false
	}
	firstRefusal = !g.rejecting
	g.rejecting = true
	return false, firstRefusal
}

// release is called once for each connection that acquire has let in.
func (g *connectionLimiter) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	// Half, so that connections that come and go at the limit are one rush.
	if g.active <= g.limit/2 {
		g.rejecting = false
	}
}
