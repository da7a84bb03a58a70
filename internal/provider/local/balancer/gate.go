package balancer

import "sync"

// gate counts the connections inside and keeps them to a limit.
type gate struct {
	limit int

	mu     sync.Mutex
	inside int
	full   bool // somebody was refused, and it has not become much emptier since
}

// enter says whether one more may come in, and whether this is the first refusal of a rush: a
// flood of connections must not become a flood of log lines.
func (g *gate) enter() (ok, firstRefusal bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside < g.limit {
		g.inside++
		return true, false
	}
	firstRefusal = !g.full
	g.full = true
	return false, firstRefusal
}

// leave is called once by each who came in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside <= g.limit/2 {
		g.full = false
	}
}
