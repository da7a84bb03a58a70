package release

import (
	"context"
	"errors"
	"time"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/usage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/registry"
)

// again is how soon something is tried that only people can mend, and that no watch tells of.
const again = time.Minute

// fetched has the content of the release: from disk, or from its source. Once it has a digest, no other
// content is taken, whatever the source has by then.
func (r *Reconciler) fetched(ctx context.Context, s *scope) error {
	digest := s.object.Spec.Digest
	if digest == "" {
		digest = s.object.Status.Digest
	}
	loaded, err := (*stack.Release)(nil), releases.ErrMissing
	if digest != "" {
		loaded, err = r.Releases.Get(ctx, s.name, digest)
	}
	if errors.Is(err, releases.ErrMissing) {
		loaded, digest, err = r.pull(ctx, s, digest)
	}
	if err != nil {
		reason := reasonOf(err)
		s.set(csv1.ConditionDownloaded, reason, err.Error())
		if reason == csv1.ReasonSourceUnreachable {
			return err
		}
		return reconcile.Wait(again, "%v", err)
	}
	s.loaded = loaded
	s.object.Status.Digest, s.object.Status.KubernetesVersion = digest, loaded.Metadata.Versions.Kubernetes
	s.set(csv1.ConditionDownloaded, "", "its content has the digest "+digest)
	return nil
}

func (r *Reconciler) pull(ctx context.Context, s *scope, digest string) (*stack.Release, string, error) {
	of, err := usage.Stack(ctx, r.Client, s.object)
	if err != nil {
		return nil, "", err
	}
	if of == nil {
		of = &csv1.ClusterStack{} // one that names no source
		of.Namespace = s.object.Namespace
	}
	source, err := r.Releases.Source(ctx, of)
	if err != nil {
		return nil, "", err
	}
	return r.Releases.Pull(ctx, source, s.name, digest)
}

// reasonOf names why a release could not be fetched.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, releases.ErrNoSource):
		return csv1.ReasonSourceMissing
	case errors.Is(err, releases.ErrInvalidSource):
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
