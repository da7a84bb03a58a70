package releases

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/version"
)

// Content returns the content of a release and its digest: from disk or, if it is missing or damaged there, from
// the source of its stack. Once the release has a digest, no other content is taken, whatever the source has by
// then.
func (l *Library) Content(ctx context.Context, c client.Reader,
	r *csv1.ClusterStackRelease) (*stack.Release, string, error) {
	name, err := version.ParseReleaseName(r.Name)
	if err != nil {
		return nil, "", err
	}
	digest := r.Status.Digest
	if digest != "" {
		loaded, err := l.Get(ctx, name, digest)
		if !errors.Is(err, ErrMissing) {
			return loaded, digest, err
		}
	}
	owner, err := lineage.StackOfRelease(ctx, c, r)
	if err != nil {
		return nil, "", err
	}
	if owner == nil {
		owner = &csv1.ClusterStack{} // one that names no source
		owner.Namespace = r.Namespace
	}
	source, err := l.Source(ctx, owner)
	if err != nil {
		return nil, "", err
	}
	return l.Pull(ctx, source, name, digest)
}
