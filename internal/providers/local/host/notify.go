package host

import "context"

// notifyChange wakes publishChanges. It never blocks, because whoever calls it may hold locks that are needed to look
// at what changed.
func (h *Host) notifyChange() {
	select {
	case h.changeSignal <- struct{}{}:
	default:
	}
}

// publishChanges sets the balancer's backends and wakes all who watch, after each change.
func (h *Host) publishChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.changeSignal:
		}
		var ready, draining []string
		for _, m := range h.listMachines() {
			switch {
			case m.kubelet.IsServing():
				ready = append(ready, m.kubelet.Endpoint().String())
			case m.kubelet.IsDraining():
				draining = append(draining, m.kubelet.Endpoint().String())
			}
		}
		h.balancer.SetBackends(ready, draining)
		h.mu.Lock()
		h.revision++
		close(h.revisionChanged)
		h.revisionChanged = make(chan struct{})
		h.mu.Unlock()
	}
}
