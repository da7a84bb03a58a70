package workload

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/workload/probe"
)

// Readiness returns a function that asks a cluster's API server whether it is ready, and returns an error with the
// reason if it does not answer or is not. It keeps its connection, and reads the Secret with the kubeconfig again only
// after a failure. It is not for concurrent use.
func (c *Clusters) Readiness(cluster client.ObjectKey) func(ctx context.Context) error {
	var connected *Cluster
	return func(ctx context.Context) error {
		if connected == nil {
			kubeconfig, err := c.readKubeconfig(ctx, cluster)
			if err == nil {
				connected, err = c.connect(cluster, kubeconfig, nil)
			}
			if err != nil {
				return fmt.Errorf("%w: %w", probe.ErrNotAsked, err)
			}
		}
		err := connected.checkReady(ctx)
		if err != nil {
			connected = nil
		}
		return err
	}
}

// checkReady asks /readyz. An answer that is not ready names its first check that fails; what else it says is the
// cluster's own.
func (c *Cluster) checkReady(ctx context.Context) error {
	code := 0
	b, err := c.api.Get().AbsPath("/readyz").Do(ctx).StatusCode(&code).Raw()
	if err == nil || code == 0 {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(strings.TrimSpace(check), " ")
			return probe.NotReadyError(fmt.Sprintf("its check %q fails", name))
		}
	}
	return probe.NotReadyError("it is not ready")
}
