package host

import (
	"context"
	"fmt"
	"net"
	"time"
)

// serveEndpoint keeps the cluster's endpoint open. It tries again if it cannot: an address that is in use may become
// free.
func (h *Host) serveEndpoint(ctx context.Context) {
	for ctx.Err() == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", h.cluster.Endpoint().String())
		if err == nil {
			h.setProblem("")
			err = h.balancer.Serve(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			h.setProblem(fmt.Sprintf("the cluster's endpoint cannot be opened: %v", err))
			sleep(ctx, time.Second)
		}
	}
}

// serveHandedEndpoint serves people who are not in the host's network, if that is one of its own.
func (h *Host) serveHandedEndpoint(ctx context.Context) {
	if h.cfg.Endpoint == nil {
		return
	}
	if err := h.balancer.Serve(ctx, h.cfg.Endpoint); err != nil && ctx.Err() == nil {
		// Only who started the host can open it again.
		h.cfg.Log.Error("the cluster's endpoint has failed; ending, to be started again", "error", err)
		h.quit()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (h *Host) setProblem(text string) {
	h.mu.Lock()
	same := h.problem == text
	h.problem = text
	h.mu.Unlock()
	if same {
		return
	}
	if text != "" {
		h.cfg.Log.Warn(text)
	}
	h.notifyChange()
}
