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
			cfg, err := h.adminConfig()
			if err == nil {
				err = simulate.Start(ctx, simulate.Config{REST: cfg, ID: "polder-" + h.cluster.UID, CIDR: podCIDR})
			}
			if err == nil {
				<-ctx.Done()
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
