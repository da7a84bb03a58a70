package host

import (
	"context"
	"time"

	"github.com/polder-kaas/polder/internal/provider/local/simulate"
)

// podAddresses are for pods on nodes that were given none.
const podAddresses = "10.244.0.1/16"

// simulate starts the simulation of nodes and pods once the cluster answers. It then looks after
// itself; only its first look at the cluster must succeed.
func (h *Host) simulate(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		if len(h.serving()) > 0 {
			cfg, err := h.adminConfig()
			if err == nil {
				err = simulate.Start(ctx, simulate.Config{REST: cfg, ID: "polder-" + h.cluster.UID, CIDR: podAddresses})
			}
			if err == nil {
				<-ctx.Done()
				return
			}
			if said != err.Error() {
				said = err.Error()
				h.cfg.Log.Info("the simulation of nodes waits", "reason", err)
			}
		}
		pause(ctx, 200*time.Millisecond)
	}
}
