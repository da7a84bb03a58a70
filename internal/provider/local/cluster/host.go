package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// supported says clearly where local clusters cannot be run at all.
func supported(_ context.Context, s *scope) error {
	if runtime.GOOS == "linux" {
		return nil
	}
	err := fmt.Errorf("local clusters need Linux; this polderd runs on %s", runtime.GOOS)
	s.running(metav1.ConditionFalse, infrav1.NotSupportedReason, err.Error())
	return reconcile.Terminal(err)
}

// host starts the cluster's host if it does not run, and waits until it answers.
func (r *Reconciler) host(ctx context.Context, s *scope) error {
	uid := string(s.local.UID)
	status, err := r.ask(ctx, uid)
	switch {
	case err == nil && status.Problem != "":
		s.running(metav1.ConditionFalse, infrav1.HostFailedReason, status.Problem)
		return reconcile.Wait(5*time.Second, "%s", status.Problem)
	case err == nil:
		r.restarts.forget(uid)
		r.Watcher.Follow(s.local, r.Hosts.Dir(uid))
		s.running(metav1.ConditionTrue, infrav1.HostRunningReason, "")
		return nil
	case !errors.Is(err, hostapi.ErrNotRunning):
		return err
	}
	if pause := r.restarts.pause(uid, time.Now()); pause > 0 {
		s.running(metav1.ConditionFalse, infrav1.HostFailedReason, "the cluster's host ended: "+r.Hosts.LastWords(uid))
		return reconcile.Wait(pause, "the next start of the host")
	}
	if err := r.Hosts.Start(uid, func() {}); err != nil {
		s.running(metav1.ConditionFalse, infrav1.HostFailedReason, err.Error())
		return err
	}
	if c := conditionOf(s.local); c == nil || c.Reason != infrav1.HostFailedReason {
		s.running(metav1.ConditionFalse, infrav1.HostStartingReason, "the cluster's host is starting")
	}
	return reconcile.Wait(startPoll, "the host to answer")
}

// startPoll is how soon a host that was just started is asked again.
const startPoll = 100 * time.Millisecond

func conditionOf(c *infrav1.LocalCluster) *metav1.Condition {
	for i, have := range c.Status.Conditions {
		if have.Type == infrav1.HostRunningCondition {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

func (r *Reconciler) ask(ctx context.Context, uid string) (hostapi.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return hostapi.NewClient(r.Hosts.Dir(uid)).Status(ctx)
}

// provisioned tells Cluster API to go on.
func provisioned(_ context.Context, s *scope) error {
	s.local.Status.Initialization.Provisioned = ptr.To(true)
	s.local.Status.FailureDomains = nil
	for _, d := range s.local.Spec.FailureDomains {
		s.local.Status.FailureDomains = append(s.local.Status.FailureDomains, clusterv1.FailureDomain{Name: d.Name, ControlPlane: ptr.To(ptr.Deref(d.ControlPlane, true))})
	}
	return nil
}

// restarts paces the starts of hosts that end again and again.
type restarts struct {
	mu    sync.Mutex
	tries map[string]*try
}

type try struct {
	next  time.Time
	delay time.Duration
}

// pause is how long to wait before the host may be started; 0 counts as a start.
func (r *restarts) pause(uid string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil {
		r.tries = map[string]*try{}
	}
	t := r.tries[uid]
	if t == nil {
		t = &try{delay: time.Second}
		r.tries[uid] = t
	}
	if d := t.next.Sub(now); d > 0 {
		return min(d, startPoll) // it may only be starting still
	}
	t.next, t.delay = now.Add(t.delay), min(2*t.delay, 30*time.Second)
	return 0
}

func (r *restarts) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, uid)
}
