package machine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/cluster-api/util"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// stopTimeout is how long a host may take to end gracefully, with all that runs in it.
const stopTimeout = time.Minute

// restartOutdatedHost ends a host whose program is that of an older polderd and cannot run the version of a new
// machine, or would let the workload cluster configure a new control plane. The reconciler of LocalClusters starts it
// again, as ours. A host whose program can is left alone, however old: its cluster is not disturbed for nothing.
func (r *Reconciler) restartOutdatedHost(ctx context.Context, s *scope) error {
	trusts := s.hostProtocol < hostapi.JoinProtocol && util.IsControlPlaneMachine(s.machine)
	if s.status != nil || !trusts && r.canHostRun(s.hostKubernetesVersion, s.machine.Spec.Version) {
		return nil
	}
	const text = "the cluster's host is of an older polderd, which cannot run %s, or not safely; it is being started anew, and the cluster answers again in some seconds"
	s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForHostReason, text, s.machine.Spec.Version)
	r.recordEvent(s, corev1.EventTypeNormal, infrav1.HostRenewedReason,
		"the cluster's host is started anew, to run "+s.machine.Spec.Version)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := r.Hosts.Stop(ctx, string(s.infra.UID), false); err != nil {
		return s.reportHostError(err)
	}
	return reconcile.Wait(500*time.Millisecond, "the cluster's host")
}

// canHostRun says whether a host with one version of Kubernetes can run a machine of another. Ours can, or checkVersion
// would have refused it.
func (r *Reconciler) canHostRun(host, machine string) bool {
	if host != "" {
		versions, err := kubeversion.NewRange(host)
		if err != nil {
			return true // it will say so itself
		}
		_, err = versions.EmulatedVersion(machine)
		return err == nil
	}
	// A host that does not say its version is older than ours (see hostapi.Status): it cannot run our newest minor.
	v, err := version.ParseSemantic(machine)
	return err != nil || v.Minor() < r.Versions.NewestMinor
}
