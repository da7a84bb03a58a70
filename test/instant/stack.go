package instant

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases/shipped"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// StackName is the name of the provider's stack.
const StackName = "bare"

//go:embed all:stack
var sources embed.FS

// SourceFiles returns the files of the provider's stack. It is for two minors of Kubernetes.
func (p *Provider) SourceFiles() (archive.Tree, error) {
	out := archive.Tree{}
	err := fs.WalkDir(sources, "stack", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[strings.TrimPrefix(name, "stack/")], err = fs.ReadFile(sources, name)
		return err
	})
	return out, err
}

// Releases are v1 of the stack, one for each minor of Kubernetes.
func (p *Provider) Releases() ([]*stack.Release, error) {
	files, err := p.SourceFiles()
	if err != nil {
		return nil, err
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil, err
	}
	var out []*stack.Release
	for _, k := range s.Versions {
		r, err := buildRelease(s, k)
		if err != nil {
			return nil, fmt.Errorf("building the stack of the instant provider: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

func buildRelease(s *stack.Source, k version.Kubernetes) (*stack.Release, error) {
	one, err := s.ForKubernetes(k)
	if err != nil {
		return nil, err
	}
	v, err := version.Parse("v1")
	if err != nil {
		return nil, err
	}
	versions, err := one.CustomVersions(v, version.Version{}, version.Version{})
	if err != nil {
		return nil, err
	}
	return one.Build(versions, nil)
}

// WriteReleases writes the releases into a directory, which polderd gets with --stack-directory.
func (p *Provider) WriteReleases(ctx context.Context, dir string) error {
	all, err := p.Releases()
	if err != nil {
		return err
	}
	return shipped.Write(ctx, dir, all)
}

// ClusterStacks returns a ClusterStack for each minor of Kubernetes, in a namespace, that serves all namespaces. Their
// releases are in the directory that polderd knows by a name.
func (p *Provider) ClusterStacks(namespace, directory string) ([]client.Object, error) {
	all, err := p.Releases()
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, r := range all {
		l := r.Name.ReleaseLine
		o := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll(l.String(), ".", "-")}}
		o.Spec = csv1.ClusterStackSpec{
			Provider: l.Provider, Name: l.Name, KubernetesVersion: l.Kubernetes.MinorString(), Channel: csv1.ChannelStable,
			Source: &csv1.Source{Directory: directory}, AllowedNamespaces: &metav1.LabelSelector{},
		}
		out = append(out, o)
	}
	return out, nil
}
