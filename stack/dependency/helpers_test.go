package dependency_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/render"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const chartYAML = "cluster-addon/cni/Chart.yaml"

// source gives the smallest source, whose add-on cni has dependencies: each is a line of flow YAML.
func source(t testing.TB, change map[string]string, dependencies ...string) *stack.Source {
	t.Helper()
	head := "apiVersion: v2\nname: cni\nversion: 1.0.0\n"
	if len(dependencies) > 0 {
		head += "dependencies:\n- " + strings.Join(dependencies, "\n- ") + "\n"
	}
	files := archive.Tree{
		"stack.yaml":               []byte("provider: docker\nclusterStackName: ferrol\nkubernetesVersion: v1.36.3\n"),
		"clusteraddon.yaml":        []byte("apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}]}\n"),
		"cluster-class/Chart.yaml": []byte("apiVersion: v2\nname: docker-ferrol-1-36-cluster-class\nversion: v1\n"),
		chartYAML:                  []byte(head),
	}
	for name, text := range change {
		files[name] = []byte(text)
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// requirementYAML is the YAML of a dependency on the chart x.
func requirementYAML(repository, version string) string {
	return fmt.Sprintf("{name: x, repository: %q, version: %q}", repository, version)
}

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

// packed gives a packed chart that renders to one object of its own name.
func packed(t testing.TB, name, version string) []byte {
	t.Helper()
	return tgz(t, map[string]string{
		name + "/Chart.yaml":       fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version),
		name + "/templates/o.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}-{{ .Chart.Version }}}\n",
	})
}

func sum(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// repository is a Helm repository on this machine.
type repository struct {
	*httptest.Server
	mu       sync.Mutex
	files    map[string][]byte // by their path
	handlers map[string]http.HandlerFunc
	requests []string
}

// serve starts a repository whose index has these entries of the chart x.
func serve(t testing.TB, entries ...string) *repository {
	t.Helper()
	r := &repository{files: map[string][]byte{}, handlers: map[string]http.HandlerFunc{}}
	r.list(entries...)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.URL.Path)
		b, ok := r.files[req.URL.Path]
		h := r.handlers[req.URL.Path]
		r.mu.Unlock()
		switch {
		case h != nil:
			h(w, req)
		case ok:
			_, _ = w.Write(b)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// withVersions starts a repository with the chart x in some versions.
func withVersions(t testing.TB, versions ...string) *repository {
	t.Helper()
	var entries []string
	for _, v := range versions {
		entries = append(entries, entry(v, "x-"+v+".tgz", ""))
	}
	r := serve(t, entries...)
	for _, v := range versions {
		r.put("/charts/x-"+v+".tgz", packed(t, "x", v))
	}
	return r
}

func entry(version, url, digest string) string {
	return fmt.Sprintf("{name: x, version: %q, urls: [%q], digest: %q}", version, url, digest)
}

func (r *repository) list(entries ...string) {
	r.put("/charts/index.yaml", []byte("apiVersion: v1\nentries:\n  x: ["+strings.Join(entries, ",\n    ")+"]\n  other: []\n"))
}

func (r *repository) put(path string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path] = b
}

func (r *repository) handle(path string, h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers[path] = h
}

// asked gives the paths of all requests since it was called last.
func (r *repository) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.requests = nil }()
	return slices.Clone(r.requests)
}

func (r *repository) url() string { return r.URL + "/charts" }

func (r *repository) host() string { return r.Listener.Addr().String() }

// fetcher gives a Fetcher that trusts hosts, and has an empty cache of its own.
func fetcher(t testing.TB, hosts ...string) *dependency.Fetcher {
	t.Helper()
	return &dependency.Fetcher{
		Client:   fetch.New(fetch.Policy{Trusted: hosts}, fetch.Limits{}),
		Registry: registry.Options{Trusted: hosts},
		Cache:    dependency.Cache(t.TempDir()),
	}
}

func lock(t testing.TB, f *dependency.Fetcher, s *stack.Source, old dependency.Lock) dependency.Lock {
	t.Helper()
	l, err := f.Lock(t.Context(), s, old, false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// with gives the source with a lock in it.
func with(t testing.TB, s *stack.Source, l dependency.Lock) *stack.Source {
	t.Helper()
	b, err := l.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	other := *s
	other.Files = maps.Clone(s.Files)
	other.Files[stack.LockFile] = b
	return &other
}

func vendor(t testing.TB, f *dependency.Fetcher, s *stack.Source) stack.VendoredCharts {
	t.Helper()
	v, err := f.Vendor(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// versions gives what was locked for the add-on cni.
func versions(l dependency.Lock) []string {
	var out []string
	for _, c := range l.Charts["cluster-addon/cni"] {
		out = append(out, c.Name+" "+c.Version)
	}
	return out
}

// fails checks that an error is this one sentence, about the first dependency of cni.
func fails(t testing.TB, err error, want string) {
	t.Helper()
	want = chartYAML + ":5: dependency x: " + want
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
