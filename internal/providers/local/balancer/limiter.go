package balancer

import "sync"

// connectionLimiter counts the connections inside and keeps them to a limit.
type connectionLimiter struct {
	limit int

	mu        sync.Mutex
	active    int
	rejecting bool // somebody was refused, and it has not become much emptier since
}

// acquire says whether one more may come in, and whether this is the first refusal of a rush: a
// flood of connections must not become a flood of log lines.
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

// release is called once by each who came in.
func (g *connectionLimiter) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if g.active <= g.limit/2 {
		g.rejecting = false
	}
}
