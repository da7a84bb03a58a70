package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// checkPlatform refuses systems where local clusters cannot be run at all.
func checkPlatform(_ context.Context, s *scope) error {
	if runtime.GOOS == "linux" {
		return nil
	}
	err := fmt.Errorf("local clusters need Linux; this polderd runs on %s", runtime.GOOS)
	s.setHostRunning(metav1.ConditionFalse, infrav1.NotSupportedReason, err.Error())
	return reconcile.Terminal(err)
}

// ensureHost starts the cluster's host if it does not run, and requeues until it answers.
func (r *Reconciler) ensureHost(ctx context.Context, s *scope) error {
	uid := string(s.local.UID)
	status, err := r.getHostStatus(ctx, uid)
	switch {
	case errors.Is(err, hostapi.ErrNotRunning):
		return r.startHost(s, uid)
	case err != nil:
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostFailedReason,
			fmt.Sprintf("the cluster's host does not answer: %s", err))
		return err
	case status.Problem != "":
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostFailedReason, status.Problem)
		return reconcile.Wait(5*time.Second, "%s", status.Problem)
	}
	if r.Clock.Since(status.StartedAt) > stableAfter {
		r.hostBackoff.Forget(uid)
	}
	r.Watcher.WatchHost(s.local, r.Hosts.Dir(uid))
	s.setHostRunning(metav1.ConditionTrue, infrav1.HostRunningReason, "")
	return nil
}

// startHost starts the host once its backoff is over, and requeues until it answers.
func (r *Reconciler) startHost(s *scope, uid string) error {
	running, err := r.Hosts.IsRunning(uid)
	if err != nil {
		return err
	}
	if running { // it does not answer yet, or it is ending
		s.setHostStarting()
		return reconcile.Wait(startPollInterval, "the host to answer")
	}
	delay, exited := r.hostBackoff.reserveStart(uid, r.Clock.Now())
	if exited {
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostFailedReason, "the cluster's host ended: "+r.Hosts.LogTail(uid))
	}
	if delay > 0 {
		return reconcile.Wait(delay, "the next start of the host")
	}
	if err := r.Hosts.Start(uid, func() { r.hostBackoff.recordExit(uid) }); err != nil {
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostFailedReason, err.Error())
		if errors.Is(err, confine.ErrEndpoint) {
			return reconcile.Wait(5*time.Second, "%s", err) // an address that is in use may become free
		}
		return err
	}
	s.setHostStarting()
	return reconcile.Wait(startPollInterval, "the host to answer")
}

// setHostStarting reports that the host is starting, but keeps the message that says why it did not stay before.
func (s *scope) setHostStarting() {
	if c := hostRunningCondition(s.local); c == nil || c.Reason != infrav1.HostFailedReason {
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostStartingReason, "the cluster's host is starting")
	}
}

// startPollInterval is the requeue interval while a host starts.
const startPollInterval = 100 * time.Millisecond

func hostRunningCondition(c *infrav1.LocalCluster) *metav1.Condition {
	for i, have := range c.Status.Conditions {
		if have.Type == infrav1.HostRunningCondition {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

func (r *Reconciler) getHostStatus(ctx context.Context, uid string) (hostapi.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return hostapi.NewClient(r.Hosts.Dir(uid)).Status(ctx)
}

// markProvisioned sets what Cluster API waits for, and the failure domains machines may be in.
func markProvisioned(_ context.Context, s *scope) error {
	s.local.Status.Initialization.Provisioned = ptr.To(true)
	s.local.Status.FailureDomains = nil
	for _, d := range s.local.Spec.FailureDomains {
		s.local.Status.FailureDomains = append(s.local.Status.FailureDomains, clusterv1.FailureDomain{
			Name: d.Name, ControlPlane: ptr.To(ptr.Deref(d.ControlPlane, true)),
		})
	}
	return nil
}
