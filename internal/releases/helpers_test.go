package releases_test

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

func tgz(t testing.TB, files map[string]string) []byte {
	t.Helper()
	tree := archive.Tree{}
	for name, text := range files {
		tree[name] = []byte(text)
	}
	var b bytes.Buffer
	if err := archive.Write(&b, tree); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// release builds a release of docker-ferrol-1-27 in a version, with further files.
func release(t testing.TB, v string, more archive.Tree) *stack.Release {
	t.Helper()
	f := archive.Tree{
		"metadata.yaml": []byte("apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n  clusterStack: " + v +
			"\n  kubernetes: v1.27.3\n  components:\n    clusterAddon: v2\n"),
		"docker-ferrol-1-27-cluster-class-" + v + ".tgz": tgz(t, map[string]string{"c/Chart.yaml": "name: class"}),
		"docker-ferrol-1-27-cluster-addon-v2.tgz":        tgz(t, map[string]string{"c/Chart.yaml": "name: addon"}),
		"manifest.json": []byte("a file of a release may be called so"),
	}
	maps.Copy(f, more)
	r, err := stack.Load("docker-ferrol-1-27-"+v, f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func name(t testing.TB, v string) version.ReleaseName {
	t.Helper()
	r, err := version.ParseReleaseName("docker-ferrol-1-27-" + v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// site is a registry on this machine.
type site struct {
	host, ref string
	server    *httptest.Server
	requests  atomic.Int32
	manifests atomic.Int32 // how many were sent
	in        atomic.Pointer[middleware]
}

type middleware func(w http.ResponseWriter, r *http.Request, next http.Handler)

func start(t testing.TB, secure bool, in middleware) *site {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := &site{}
	s.between(in)
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			s.manifests.Add(1)
		}
		if in := *s.in.Load(); in != nil {
			in(w, r, inner)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	t.Cleanup(s.server.Close)
	s.host = s.server.Listener.Addr().String()
	s.ref = "oci://" + s.host + "/kaas/stacks"
	return s
}

// between puts a middleware in front of the registry.
func (s *site) between(in middleware) { s.in.Store(&in) }

// publish writes a release, over one that exists, and returns its digest.
func publish(t testing.TB, ref string, o stacks.Options, r *stack.Release) string {
	t.Helper()
	o.Overwrite = true
	s, _, err := stacks.Open(t.Context(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Publish(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p.Reference.Digest
}

// library makes a Library with a directory of its own, if the config has none. Its ClusterStacks may use these
// Secrets, which are in namespace ns.
func library(t testing.TB, c releases.Config, secrets ...client.Object) *releases.Library {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "cache")
	}
	if c.Secrets == nil {
		c.Secrets = fake.NewClientBuilder().WithObjects(secrets...).Build()
	}
	l, err := releases.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

// clusterStack makes a ClusterStack with a source.
func clusterStack(source *csv1.Source) *csv1.ClusterStack {
	return &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cs"}, Spec: csv1.ClusterStackSpec{Source: source}}
}

func oci(ref string) *csv1.ClusterStack { return clusterStack(&csv1.Source{OCI: ref}) }

// ociOf makes a ClusterStack of another namespace.
func ociOf(namespace, ref string) *csv1.ClusterStack {
	cs := oci(ref)
	cs.Namespace = namespace
	return cs
}

func ociWithSecret(ref string) *csv1.ClusterStack {
	return clusterStack(&csv1.Source{OCI: ref, SecretRef: &csv1.SecretReference{Name: "access"}})
}

func source(t testing.TB, l *releases.Library, cs *csv1.ClusterStack) *releases.Source {
	t.Helper()
	s, err := l.Source(t.Context(), cs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// entries lists the names in a directory, hidden ones too.
func entries(t testing.TB, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func place(dir, digest string) string {
	return filepath.Join(dir, strings.Replace(digest, ":", "-", 1))
}
