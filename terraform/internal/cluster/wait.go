package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

const (
	askAgain = 2 * time.Second
	// maxStalled is how long a cluster that no customer can help may be stalled before nobody waits any more.
	maxStalled = 30 * time.Second
)

// errNotReady says that a cluster is there and not as it should be.
var errNotReady = errors.New("not ready")

// awaitReady waits until a cluster is as its spec says, and returns what it saw last. The error is errNotReady if time is
// over, if somebody has to act first, or if whoever waits was interrupted: the cluster is there, and goes on.
func (c clusters) awaitReady(ctx context.Context, o *v1alpha1.WorkloadCluster,
	timeout time.Duration) (*v1alpha1.WorkloadCluster, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stalled := time.Duration(0)
	for {
		settled, mustAct := judge(o)
		switch {
		case settled:
			return o, nil
		case mustAct && (o.Status.Actor == v1alpha1.Customer || stalled >= maxStalled):
			return o, fmt.Errorf("%w: %s", errNotReady, describe(o))
		case mustAct:
			stalled += askAgain
		default:
			stalled = 0
		}
		next, err := c.askLater(limited, o)
		switch {
		case limited.Err() != nil && ctx.Err() == nil:
			return o, fmt.Errorf("%w after %s: %s", errNotReady, timeout, describe(o))
		case ctx.Err() != nil:
			return o, fmt.Errorf("%w when it was interrupted: %s", errNotReady, describe(o))
		case err != nil:
			return o, err
		}
		o = next
	}
}

// askLater reads the cluster again after a while.
func (c clusters) askLater(ctx context.Context, o *v1alpha1.WorkloadCluster) (*v1alpha1.WorkloadCluster, error) {
	if err := pause(ctx, askAgain); err != nil {
		return o, err
	}
	next, _, err := c.getSame(ctx, o.Name, string(o.UID))
	if errors.Is(err, errGone) {
		return o, fmt.Errorf("cluster %s was deleted meanwhile", o.Name)
	}
	return next, err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judge says whether a cluster is as its spec says, and if not, whether nothing goes on until somebody acts. What the
// plane says of an earlier spec does not count. Nobody waits for a cluster that is paused.
func judge(o *v1alpha1.WorkloadCluster) (settled, mustAct bool) {
	s := &o.Status
	if s.ObservedGeneration != o.Generation {
		return false, false
	}
	if o.Spec.Paused != nil && *o.Spec.Paused && s.Phase == v1alpha1.PhasePaused {
		return true, false
	}
	ready := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == o.Generation {
		return true, false
	}
	return false, s.Phase == v1alpha1.PhaseStalled || s.Phase == v1alpha1.PhasePaused
}

// awaitGone waits until a cluster is not there any more.
func (c clusters) awaitGone(ctx context.Context, o *v1alpha1.WorkloadCluster, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		next, _, err := c.getSame(limited, o.Name, string(o.UID))
		switch {
		case errors.Is(err, errGone):
			return nil
		case limited.Err() != nil:
			return fmt.Errorf("it is still there after %s: %s", timeout, describe(o))
		case err != nil:
			return err
		}
		o = next
		_ = pause(limited, askAgain) // the next turn says if time is over
	}
}

// describe is what happens, who must act, and how.
func describe(o *v1alpha1.WorkloadCluster) string {
	s, parts := &o.Status, []string{}
	if s.Message != "" {
		parts = append(parts, strings.TrimSuffix(s.Message, "."))
	} else {
		parts = append(parts, "the plane has not said yet how it is")
	}
	switch s.Actor {
	case v1alpha1.Customer:
		parts = append(parts, "you must act")
	case v1alpha1.PlatformOperator:
		parts = append(parts, "the plane's operator must act")
	case v1alpha1.Nobody, "":
	default:
		parts = append(parts, string(s.Actor)+" must act")
	}
	if s.NextStep != "" {
		parts = append(parts, s.NextStep)
	}
	return strings.Join(parts, "; ")
}
