package balancer

import (
	"context"
	"slices"
	"sync"
)

// pool is the set of backends and the claims on them.
type pool struct {
	mu       sync.Mutex
	ready    []*backend
	draining []*backend    // keep what they have and get nothing new
	next     int           // where the search for the least busy begins, so that ties rotate
	changed  chan struct{} // closed and renewed by each setBackends
	waiting  int
}

// backend is one stay of an address in the ready set. An address that leaves and comes back is
// a new backend, so claims on the old one stay cut.
type backend struct {
	address string
	claims  map[*claim]struct{}
}

// claim is the use of a backend by one connection, from before the dial to the end. As it is known to the pool before
// there is anything to cut, no dial can slip past a removal.
type claim struct {
	backend *backend
	cancel  context.CancelFunc
}

func newPool() *pool { return &pool{changed: make(chan struct{})} }

// claimBackend takes the least busy backend that is not among tried; cancel will be called, once or more, when that
// backend leaves the set. If there is none, changed closes when the set is replaced.
func (p *pool) claimBackend(tried map[*backend]bool, cancel context.CancelFunc) (c *claim, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i := range p.ready {
		i = (p.next + i) % len(p.ready)
		if tried[p.ready[i]] {
			continue
		}
		if best < 0 || len(p.ready[i].claims) < len(p.ready[best].claims) {
			best = i
		}
	}
	if best < 0 {
		return nil, p.changed
	}
	p.next = best + 1
	c = &claim{backend: p.ready[best], cancel: cancel}
	c.backend.claims[c] = struct{}{}
	return c, nil
}

// release ends a claim.
func (p *pool) release(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(c.backend.claims, c)
	c.cancel()
}

// setBackends replaces both sets and cuts the claims on backends that are in neither any more.
func (p *pool) setBackends(ready, draining []string) (added, removed []string, cut int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[string]*backend{}
	for _, b := range slices.Concat(p.draining, p.ready) {
		known[b.address] = b
	}
	previousReady := p.ready
	previous := slices.Concat(p.ready, p.draining)
	p.ready, p.draining = nil, nil
	for _, a := range removeDuplicates(ready) {
		if known[a] == nil {
			known[a] = &backend{address: a, claims: map[*claim]struct{}{}}
		}
		if !slices.Contains(previousReady, known[a]) {
			added = append(added, a)
		}
		p.ready = append(p.ready, known[a])
	}
	// An address that is not known has no connections that could be kept.
	for _, a := range removeDuplicates(draining) {
		if b := known[a]; b != nil && !slices.Contains(p.ready, b) {
			p.draining = append(p.draining, b)
		}
	}
	for _, b := range previous {
		if slices.Contains(previousReady, b) && !slices.Contains(p.ready, b) {
			removed = append(removed, b.address)
		}
		if slices.Contains(p.ready, b) || slices.Contains(p.draining, b) {
			continue
		}
		for c := range b.claims {
			c.cancel()
			cut++
		}
	}
	// Closed even if nothing changed: those who wait try again at once, as SetReady promises.
	close(p.changed)
	p.changed = make(chan struct{})
	return added, removed, cut
}

func removeDuplicates(all []string) (out []string) {
	for _, a := range all {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// addWaiting adds n to the number of connections that wait for a backend.
func (p *pool) addWaiting(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
}

func (p *pool) state() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{Waiting: p.waiting}
	for _, b := range p.ready {
		s.Ready = append(s.Ready, BackendState{Address: b.address, Connections: len(b.claims)})
	}
	for _, b := range p.draining {
		s.Draining = append(s.Draining, BackendState{Address: b.address, Connections: len(b.claims)})
	}
	return s
}
