package host

import "context"

// changed says that something happened. It only leaves a note, because whoever calls it may hold
// locks that are needed to look at what happened.
func (h *Host) changed() {
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

// follow wakes all who watch after each change, and tells the balancer who serves.
func (h *Host) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.poke:
		}
		var ready, draining []string
		for _, m := range h.list() {
			switch {
			case m.kubelet.Serving():
				ready = append(ready, m.kubelet.Endpoint().String())
			case m.kubelet.Draining():
				draining = append(draining, m.kubelet.Endpoint().String())
			}
		}
		h.balancer.Set(ready, draining)
		h.mu.Lock()
		h.revision++
		close(h.news)
		h.news = make(chan struct{})
		h.mu.Unlock()
	}
}
