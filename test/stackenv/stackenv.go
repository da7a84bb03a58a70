// Package stackenv makes cluster stacks for tests, and a registry to publish them in.
package stackenv

import (
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// Registry is a real registry on this machine.
type Registry struct {
	server *httptest.Server
}

// NewRegistry starts a registry; Close ends it.
func NewRegistry() *Registry {
	return &Registry{httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))}
}

// Host is where it is, with its port.
func (r *Registry) Host() string { return r.server.Listener.Addr().(*net.TCPAddr).String() }

// Repository is a reference to one of its repositories.
func (r *Registry) Repository(name string) string { return "oci://" + r.Host() + "/" + name }

// Close ends the registry.
func (r *Registry) Close() { r.server.Close() }

// Publish publishes releases in a repository or a directory.
func Publish(t testing.TB, where string, releases ...*stack.Release) {
	t.Helper()
	store, _, err := stackregistry.Open(t.Context(), where, stackregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		if _, err := store.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// ReadSource reads the files of a stack of ours, for example local/scs.
func ReadSource(t testing.TB, dir string) archive.Tree {
	t.Helper()
	files, err := archive.ReadDir(filepath.Join(moduleRoot(t), "stacks", filepath.FromSlash(dir)), archive.DefaultLimits, nil)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// moduleRoot is the directory of the module, above the one that tests run in.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above the directory of the test", err)
	return ""
}

// Build builds a release of a source, for a minor of Kubernetes.
func Build(t testing.TB, files archive.Tree, kubernetes, v string) *stack.Release {
	t.Helper()
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

// BuildShipped builds a release of a stack of ours.
func BuildShipped(t testing.TB, dir, kubernetes, v string) *stack.Release {
	t.Helper()
	return Build(t, ReadSource(t, dir), kubernetes, v)
}
