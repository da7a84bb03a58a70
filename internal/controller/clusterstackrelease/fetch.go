package clusterstackrelease

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
)

// fetchRetry is how soon a fetch is tried again that only people can mend, and that no watch reports.
const fetchRetry = time.Minute

// busyRetry is how soon a source is tried again that was not read because others were.
const busyRetry = 5 * time.Second

// fetchContent loads the content of the release, from disk or from its source.
func (r *Reconciler) fetchContent(ctx context.Context, s *scope) error {
	loaded, digest, err := r.Releases.Content(ctx, r.Client, s.object)
	if errors.Is(err, fairness.ErrBusy) {
		// Being busy is no news about a release whose content was there before.
		if meta.FindStatusCondition(s.object.Status.Conditions, csv1.ConditionDownloaded) == nil {
			s.conditions.SetFalse(csv1.ConditionDownloaded, csv1.ReasonSourceBusy, err.Error())
		}
		return reconcile.Wait(wait.Jitter(busyRetry, 0.2), "%v", err)
	}
	if err != nil {
		reason := reasonOf(err)
		s.conditions.SetFalse(csv1.ConditionDownloaded, reason, err.Error())
		if reason == csv1.ReasonSourceUnreachable {
			return err
		}
		return reconcile.Wait(fetchRetry, "%v", err)
	}
	s.loaded = loaded
	s.object.Status.Digest, s.object.Status.KubernetesVersion = digest, loaded.Metadata.Versions.Kubernetes
	s.conditions.SetTrue(csv1.ConditionDownloaded, "its content has the digest "+digest)
	return nil
}

// reasonOf returns the condition reason for a release that could not be fetched.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, releases.ErrNoSource):
		return csv1.ReasonSourceMissing
	case errors.Is(err, releases.ErrInvalidSource), errors.Is(err, registry.ErrCredentials),
		errors.Is(err, fetch.ErrRefused):
		return csv1.ReasonSourceInvalid
	case errors.Is(err, registry.ErrNotFound):
		return csv1.ReasonNotFound
	case errors.Is(err, registry.ErrMoved), errors.Is(err, registry.ErrDigest):
		return csv1.ReasonDigestChanged
	case errors.Is(err, registry.ErrInvalid):
		return csv1.ReasonInvalid
	default:
		return csv1.ReasonSourceUnreachable
	}
}
