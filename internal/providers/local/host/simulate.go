package host

import (
	"context"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/simulate"
)

// podCIDR is for pods on nodes that have no pod CIDR of their own.
const podCIDR = "10.244.0.1/16"

// runSimulation starts the simulation of nodes and pods once the cluster answers. From then on it recovers by itself;
// only its start must succeed.
func (h *Host) runSimulation(ctx context.Context) {
	lastLogged := ""
	for ctx.Err() == nil {
		if len(h.servingMachines()) > 0 {
			err := h.simulateUntilDone(ctx)
			if err == nil {
				return
			}
			if lastLogged != err.Error() {
				lastLogged = err.Error()
				h.cfg.Log.Info("the simulation of nodes waits", "reason", err)
			}
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// simulateUntilDone runs the simulation until ctx ends; an error means that it could not start.
func (h *Host) simulateUntilDone(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // its certificate is renewed until then
	defer cancel()
	cfg, err := h.renewedAdminConfig(ctx)
	if err != nil {
		return err
	}
	if err := simulate.Start(ctx, simulate.Config{REST: cfg, ID: "polder-" + h.cluster.UID, CIDR: podCIDR}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
