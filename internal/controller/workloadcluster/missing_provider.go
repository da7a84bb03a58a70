package workloadcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// MissingProviderMonitor reports on WorkloadClusters that nobody acts on them: their provider is not installed, or has
// sent no heartbeat for long. Nobody else could. It also deletes the clusters of such WorkloadClusters if they are
// being deleted, since that needs no provider.
type MissingProviderMonitor struct {
	Client client.Client // reads from a cache
	Live   client.Reader // reads from the API server
	Events events.EventRecorder
	Clock  clock.PassiveClock

	heartbeats map[string]observedHeartbeat // by provider
}

// observedHeartbeat is the last heartbeat of a provider, and when it was new here. Its clock may differ from ours, so
// only changes of what it says count, as with leases. A plane that has just started waits for the whole time-out before
// it calls a provider absent: what was reported before is still on the clusters, and if the provider were there, two
// would write the same status against each other.
type observedHeartbeat struct {
	lastSeenTime metav1.Time
	observedAt   time.Time
}

// Times of MissingProviderMonitor.
const (
	missingProviderInterval = 20 * time.Second
	heartbeatTimeout        = 3 * heartbeat.RenewInterval
)

// Start checks from time to time until ctx ends.
func (u *MissingProviderMonitor) Start(ctx context.Context) error {
	t := time.NewTicker(missingProviderInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := u.Once(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Looking for clusters whose provider is not there")
		}
	}
}

// Once checks all WorkloadClusters.
func (u *MissingProviderMonitor) Once(ctx context.Context) error {
	var providers v1alpha1.ProviderList
	var clusters v1alpha1.WorkloadClusterList
	if err := u.Client.List(ctx, &providers); err != nil {
		return err
	}
	if err := u.Client.List(ctx, &clusters); err != nil {
		return err
	}
	u.recordHeartbeats(providers.Items)
	var errs []error
	for i := range clusters.Items {
		o := &clusters.Items[i]
		why := u.absenceReason(o.Spec.Provider)
		if why == "" {
			continue
		}
		// An error for one cluster must not keep the others from being reported.
		errs = append(errs, apierror.IgnoreNotFound(u.reportMissing(ctx, o, why)))
	}
	return errors.Join(errs...)
}

// recordHeartbeats remembers the heartbeats of providers. Providers that are gone are forgotten.
func (u *MissingProviderMonitor) recordHeartbeats(providers []v1alpha1.Provider) {
	seen := map[string]observedHeartbeat{}
	for i := range providers {
		p := &providers[i]
		lastSeen := p.CreationTimestamp // it was created, and has sent none yet
		if p.Status.LastSeenTime != nil {
			lastSeen = *p.Status.LastSeenTime
		}
		was, ok := u.heartbeats[p.Name]
		if !ok || !was.lastSeenTime.Equal(&lastSeen) {
			was = observedHeartbeat{lastSeen, u.Clock.Now()}
		}
		seen[p.Name] = was
	}
	u.heartbeats = seen
}

// absenceReason says why nobody acts for a provider; "" if somebody does.
func (u *MissingProviderMonitor) absenceReason(name string) string {
	s, ok := u.heartbeats[name]
	switch {
	case !ok:
		return fmt.Sprintf("provider %s is not installed, so nobody acts on this cluster", name)
	case u.Clock.Now().Sub(s.observedAt) > heartbeatTimeout:
		return fmt.Sprintf("provider %s has not been seen since %s, so nobody acts on this cluster", name,
			s.lastSeenTime.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return ""
}

// reportMissing reports on a cluster that its provider is missing, or deletes it.
func (u *MissingProviderMonitor) reportMissing(ctx context.Context, o *v1alpha1.WorkloadCluster, why string) error {
	if !o.DeletionTimestamp.IsZero() {
		return u.deleteCluster(ctx, o)
	}
	before := o.DeepCopy()
	st := &o.Status
	st.ObservedGeneration = o.Generation
	st.Phase, st.Message, st.Actor = v1alpha1.PhaseStalled, why, v1alpha1.PlatformOperator
	st.NextStep = fmt.Sprintf("start provider %s; see: polder providers", o.Spec.Provider)
	for _, t := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady} {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: t, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProviderMissing, Message: why,
			ObservedGeneration: o.Generation,
		})
	}
	setKstatusConditions(o)
	return reconcile.Write(ctx, u.Client, before, o)
}

// deleteCluster does what the provider's controller would, and reports it.
func (u *MissingProviderMonitor) deleteCluster(ctx context.Context, o *v1alpha1.WorkloadCluster) error {
	r := &Reconciler{Client: u.Client, Live: u.Live, Events: u.Events, Clock: u.Clock}
	s := newScope(o)
	if err := r.gather(ctx, s); err != nil {
		return err
	}
	_, err := reconcile.Run(ctx, s, r.deleteCluster)
	r.summarize(s)
	_, err = reconcile.Finish(ctrl.Result{}, err, s.tracked.Write(ctx, r.Client))
	return err
}
