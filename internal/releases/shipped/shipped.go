// Package shipped builds releases of the stacks that are in the binary, so that a plane has something to offer
// from its first moment, without a network.
package shipped

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// Directory is the name under which ClusterStacks find the releases.
const Directory = "shipped"

// entry is one line of versions.yaml.
type entry struct {
	Stack   string `json:"stack"` // provider/name
	Version string `json:"version"`
	Hash    string `json:"hash"`
}

// BuildReleases builds a release of each stack in from for each of its versions of Kubernetes.
func BuildReleases(from fs.FS) ([]*stack.Release, error) {
	entries, err := readVersions(from)
	if err != nil {
		return nil, err
	}
	var out []*stack.Release
	for _, e := range entries {
		s, err := readSource(from, e)
		if err != nil {
			return nil, fmt.Errorf("stack %s: %w", e.Stack, err)
		}
		v, err := version.Parse(e.Version)
		if err != nil {
			return nil, fmt.Errorf("stack %s: %w", e.Stack, err)
		}
		for _, k := range s.Versions {
			r, err := buildRelease(s, k, v)
			if err != nil {
				return nil, fmt.Errorf("stack %s for Kubernetes %s: %w", e.Stack, k, err)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

func buildRelease(s *stack.Source, k version.Kubernetes, v version.Version) (*stack.Release, error) {
	one, err := s.ForKubernetes(k)
	if err != nil {
		return nil, err
	}
	versions, err := one.CustomVersions(v, version.Version{}, version.Version{})
	if err != nil {
		return nil, err
	}
	return one.Build(versions, nil)
}

func readVersions(from fs.FS) ([]entry, error) {
	b, err := fs.ReadFile(from, "versions.yaml")
	if err != nil {
		return nil, err
	}
	var entries []entry
	if err := yaml.UnmarshalStrict(b, &entries); err != nil {
		return nil, fmt.Errorf("versions.yaml: %w", err)
	}
	return entries, nil
}

// readSource reads the files of one stack.
func readSource(from fs.FS, e entry) (*stack.Source, error) {
	files := archive.Tree{}
	err := fs.WalkDir(from, e.Stack, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, name)
		files[strings.TrimPrefix(name, e.Stack+"/")] = b
		return err
	})
	if err != nil {
		return nil, err
	}
	return stack.ParseSource(files)
}

// Write publishes releases to a directory; those that exist there stay as they are, since clusters may use them.
func Write(ctx context.Context, dir string, releases []*stack.Release) error {
	store, ref, err := registry.Open(ctx, dir, registry.Options{})
	if err != nil {
		return err
	}
	for _, r := range releases {
		if _, err := store.Pull(ctx, ref.WithTag(r.Name.Tag())); err == nil {
			continue
		} else if !errors.Is(err, registry.ErrNotFound) {
			return err
		}
		if _, err := store.Publish(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Objects returns a namespace with a ClusterStack for each release line, which all namespaces may use.
func Objects(releases []*stack.Release) []client.Object {
	out := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CatalogueNamespace}}}
	for _, r := range releases {
		l := r.Name.ReleaseLine
		s := &csv1.ClusterStack{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: v1alpha1.CatalogueNamespace, Name: strings.ReplaceAll(path.Base(l.String()), ".", "-"),
			},
		}
		s.Spec = csv1.ClusterStackSpec{
			Provider: l.Provider, Name: l.Name, KubernetesVersion: l.Kubernetes.MinorString(), Channel: csv1.ChannelStable,
			Source: &csv1.Source{Directory: Directory}, AllowedNamespaces: &metav1.LabelSelector{},
		}
		out = append(out, s)
	}
	return out
}
