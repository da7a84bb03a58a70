// Package content has the content of releases for controllers.
package content

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/usage"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// Get gives the content of a release and its digest: from disk or, if it is not there or damaged, from
// the source of its stack. Once the release has a digest, no other content is taken, whatever the source
// has by then.
func Get(ctx context.Context, c client.Reader, l *releases.Library, r *csv1.ClusterStackRelease) (*stack.Release, string, error) {
	name, err := version.ParseReleaseName(r.Name)
	if err != nil {
		return nil, "", err
	}
	digest := r.Status.Digest
	if digest != "" {
		loaded, err := l.Get(ctx, name, digest)
		if !errors.Is(err, releases.ErrMissing) {
			return loaded, digest, err
		}
	}
	owner, err := usage.StackOfRelease(ctx, c, r)
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

// ToUnstructured are rendered ones as they are applied.
func ToUnstructured(objects []render.Object) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = &unstructured.Unstructured{Object: o.Value}
	}
	return out
}
