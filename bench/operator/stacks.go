package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

const kubernetes = "1.37"

// published is a registry on this machine, and the shipped stack for it.
type published struct {
	server  *httptest.Server
	shipped archive.Tree
}

func newPublished() (*published, error) {
	files, err := archive.ReadDir("stacks/local/scs", archive.DefaultLimits, nil)
	if err != nil {
		return nil, err
	}
	return &published{httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)))), files}, nil
}

func (p *published) host() string { return p.server.Listener.Addr().String() }

func (p *published) close() { p.server.Close() }

func (p *published) repository(name string) string { return "oci://" + p.host() + "/" + name }

// publish publishes a version of a stack; its class is of that version too, so that no two have the same
// digest. It returns the name of the class and the version of Kubernetes.
func (p *published) publish(ctx context.Context, repository string, number int,
	files archive.Tree) (class, kube string, err error) {
	r, err := build(files, number)
	if err != nil {
		return "", "", err
	}
	store, _, err := stackregistry.Open(ctx, p.repository(repository), stackregistry.Options{})
	if err != nil {
		return "", "", err
	}
	_, err = store.Publish(ctx, r)
	return r.Name.Class(), r.Metadata.Versions.Kubernetes, err
}

func build(files archive.Tree, number int) (*stack.Release, error) {
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil, err
	}
	k, err := version.ParseKubernetes(kubernetes)
	if err != nil {
		return nil, err
	}
	if s, err = s.ForKubernetes(k); err != nil {
		return nil, err
	}
	v, err := version.Parse(versionName(number))
	if err != nil {
		return nil, err
	}
	all, err := s.CustomVersions(v, version.Version{}, version.Version{})
	if err != nil {
		return nil, err
	}
	return s.Build(all, nil)
}

func versionName(number int) string { return fmt.Sprintf("v%d", number) }

// stack is a ClusterStack that wants the versions first to last of the repository named like its namespace.
func (p *published) stack(namespace string, first, last int) *csv1.ClusterStack {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"}}
	s.Spec = csv1.ClusterStackSpec{
		Provider: "local", Name: "scs", KubernetesVersion: kubernetes, AutoSubscribe: ptr.To(false),
		Source: &csv1.Source{OCI: p.repository(namespace)},
	}
	for n := first; n <= last; n++ {
		s.Spec.Versions = append(s.Spec.Versions, versionName(n))
	}
	return s
}

// withMany is the shipped stack with one more add-on at the end, of so many objects, some of which are
// not as in the release before.
func (p *published) withMany(objects, differing int) archive.Tree {
	out := maps.Clone(p.shipped)
	const stage, upgrades = "    - name: many\n      action: apply\n", "  BeforeClusterUpgrade:\n"
	stages := strings.Replace(string(out["clusteraddon.yaml"]), upgrades, stage+upgrades, 1)
	out["clusteraddon.yaml"] = []byte(strings.TrimRight(stages, "\n") + "\n" + stage)
	out["cluster-addon/many/Chart.yaml"] = []byte("apiVersion: v2\nname: many\nversion: 0.1.0\n")
	out["cluster-addon/many/values.yaml"] = fmt.Appendf(nil, "objects: %d\ndiffering: %d\n", objects, differing)
	out["cluster-addon/many/templates/all.yaml"] = []byte(`{{- range $i := until (int .Values.objects) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: many-{{ $i }}
  namespace: {{ $.Release.Namespace }}
data:
  index: {{ $i | quote }}
  state: {{ ternary "new" "old" (lt $i (int $.Values.differing)) }}
  text: {{ repeat 20 "some text " | quote }}
{{- end }}
`)
	return out
}
