package clusterstack

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// Backoff of a source that does not answer, and the time-out of one check, however slowly it answers.
const (
	initialBackoff = 5 * time.Second
	maxBackoff     = 5 * time.Minute
	listTimeout    = time.Minute
)

// sourceState is what was seen at a source. It is kept in memory only: after a restart the source is checked again, and
// until then nothing is deleted.
type sourceState struct {
	uid        types.UID
	generation int64  // of the stack
	request    string // the annotation that asked for the check
	nextCheck  time.Time

	failures   int // failed checks in a row
	err        error
	reason     string
	answered   bool // the source has answered at least once
	entries    []registry.Entry
	rejected   []string // artifacts named like releases of the stack that are invalid
	otherLines []string // some of the other lines that the source has
	location   string
}

// checkSource checks the source if it is time to, or if somebody asks for it. A source that cannot be reached is no
// error: existing releases are served further.
func (r *Reconciler) checkSource(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.object)
	// Not locked while the source is listed: that may take long, and one object is reconciled by one worker at a time.
	last, _ := r.sources.Load(key)
	if last.uid != s.object.UID {
		last = sourceState{uid: s.object.UID}
	}
	request := s.object.Annotations[csv1.RequestedAtAnnotation]
	if last.request != request {
		last.failures = 0 // somebody is working on it, and need not wait for long
	}
	if last.generation != s.object.Generation || last.request != request || !r.Clock.Now().Before(last.nextCheck) {
		next := r.listSource(ctx, s.object, last)
		// The check ended because we stop, which says nothing about the source.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(next.err, fairness.ErrBusy) {
			return r.keepPreviousSource(s, last, next)
		}
		next.generation, next.request = s.object.Generation, request
		last = next
		r.sources.Store(key, last)
	}
	s.source = last
	if request != "" {
		s.object.Status.LastHandledReconcileAt = &request
	}
	if last.err != nil {
		s.conditions.SetFalse(csv1.ConditionSourceAvailable, last.reason, last.err.Error())
	} else {
		s.conditions.SetTrue(csv1.ConditionSourceAvailable, last.describeReleases(s.object))
	}
	return nil
}

// keepPreviousSource goes on with what was seen before: others of the namespace were being read. It is not remembered,
// so that the check is still due.
func (r *Reconciler) keepPreviousSource(s *scope, last, next sourceState) error {
	s.source = last
	// What was seen for another generation may be of another source.
	if last.generation != s.object.Generation {
		s.source = next
	}
	s.source.nextCheck = r.Clock.Now().Add(wait.Jitter(initialBackoff, 0.2))
	if c := meta.FindStatusCondition(s.object.Status.Conditions, csv1.ConditionSourceAvailable); c == nil ||
		c.ObservedGeneration != s.object.Generation {
		s.conditions.SetFalse(csv1.ConditionSourceAvailable, csv1.ReasonSourceBusy, next.err.Error())
	}
	return nil
}

// listSource lists the releases of the stack's line and channel.
func (r *Reconciler) listSource(ctx context.Context, o *csv1.ClusterStack, last sourceState) sourceState {
	interval := r.Interval
	if o.Spec.Interval != nil {
		interval = o.Spec.Interval.Duration
	}
	if last.generation != o.Generation {
		last = sourceState{uid: o.UID} // it may be another source by now
	}
	source, err := r.Releases.Source(ctx, o)
	var list registry.Listing
	if err == nil {
		last.location = source.String()
		line := lineage.LineOfStack(o)
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		last.otherLines = nil
		list, err = source.List(ctx, func(v version.ReleaseName) bool {
			if !line.SameLine(v.ReleaseLine) {
				last.addOtherLine(v.ReleaseLine.String())
			}
			return line.SameLine(v.ReleaseLine) && lineage.IsInChannel(o.Spec.Channel, v.Version)
		})
	}
	if err != nil {
		last.failures++
		last.err, last.reason = err, reasonOf(err)
		// Never later than a source that answers is checked. The shift is bounded, since it would overflow.
		backoff := min(initialBackoff<<min(last.failures-1, 10), maxBackoff, interval)
		last.nextCheck = r.Clock.Now().Add(wait.Jitter(backoff, 0.2))
		return last
	}
	last.rejected = nil
	for _, w := range list.Warnings {
		if w.IsOfLine(lineage.LineOfStack(o)) {
			last.rejected = append(last.rejected, w.String())
		}
		ctrl.LoggerFrom(ctx).V(1).Info("Something at the source is no release", "source", last.location, "warning",
			w.String())
	}
	last.failures, last.err, last.reason = 0, nil, ""
	last.answered, last.entries = true, list.Entries
	last.nextCheck = r.Clock.Now().Add(wait.Jitter(interval, 0.2))
	return last
}

// reasonOf returns the condition reason for an error of a source.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, releases.ErrNoSource):
		return csv1.ReasonSourceMissing
	case errors.Is(err, releases.ErrInvalidSource), errors.Is(err, registry.ErrCredentials),
		errors.Is(err, registry.ErrNotFound), errors.Is(err, fetch.ErrRefused):
		return csv1.ReasonSourceInvalid
	default:
		return csv1.ReasonSourceUnreachable
	}
}

// findEntry returns what the source has under a name.
func (l sourceState) findEntry(release string) (registry.Entry, bool) {
	for _, e := range l.entries {
		if e.Release.Tag() == release {
			return e, true
		}
	}
	return registry.Entry{}, false
}

// sourceFailure returns the condition of a source that failed; nil if it did not.
func sourceFailure(o *csv1.ClusterStack) *metav1.Condition {
	if c := meta.FindStatusCondition(o.Status.Conditions, csv1.ConditionSourceAvailable); c != nil &&
		c.Reason != csv1.ReasonAvailable {
		return c
	}
	return nil
}
