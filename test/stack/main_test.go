// Package stack tests the stacks we ship where they are used: a real plane takes their classes, and
// real clusters are made from them.
package stack

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
	"github.com/polder-kaas/polder/test/testenv"
)

var shared = testenv.NewShared()

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(shared.Run(m))
}

const (
	soon          = time.Minute
	createTimeout = 8 * time.Minute
)

// release builds a stack of this repository for one minor of Kubernetes.
func release(t *testing.T, dir, kubernetes, v string) *stack.Release {
	t.Helper()
	files, err := archive.ReadDir(filepath.Join("..", "..", "stacks", dir), archive.DefaultLimits, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		t.Fatal(err)
	}
	k, err := version.ParseKubernetes(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.ForKubernetes(k); err != nil {
		t.Fatal(err)
	}
	number, err := version.Parse(v)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := s.CustomVersions(number, version.Version{}, version.Version{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Build(versions, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// install makes the objects of a release's class in a namespace.
func install(t *testing.T, c client.Client, r *stack.Release, namespace string) *stack.Class {
	t.Helper()
	class, found, err := r.RenderClass(t.Context(), new(render.Renderer), namespace)
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	for _, o := range class.Objects {
		u := &unstructured.Unstructured{Object: o.Value}
		u.SetNamespace(namespace)
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	return class
}
