package dependency_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/polder-kaas/polder/stack/dependency"
)

// ociRegistry is a real OCI registry on this machine.
type ociRegistry struct {
	*httptest.Server
	t        testing.TB
	requests atomic.Int32
}

func startRegistry(t testing.TB) *ociRegistry {
	t.Helper()
	r := &ociRegistry{t: t}
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *ociRegistry) host() string { return r.Listener.Addr().String() }

func (r *ociRegistry) url() string { return "oci://" + r.host() + "/charts" }

func (r *ociRegistry) put(path, mediaType string, b []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPut, r.URL+"/v2/charts/"+path, bytes.NewReader(b))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		r.t.Fatalf("%s: %s", path, resp.Status)
	}
	r.requests.Store(0)
}

// push writes a chart as helm push does.
func (r *ociRegistry) push(name, tag string, chart []byte) {
	r.t.Helper()
	config := []byte("{}")
	for _, b := range [][]byte{config, chart} {
		r.put(name+"/blobs/uploads/1?digest="+sum(b), "application/octet-stream", b)
	}
	m := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":%q,"size":2},
"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":%q,"size":%d}]}`, sum(config), sum(chart), len(chart))
	r.put(name+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", []byte(m))
}

func TestOCI(t *testing.T) {
	r := startRegistry(t)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0", "3.0.0+build.1", "3.0.0+build.2", "v4.0.0"} {
		r.push("x", strings.ReplaceAll(v, "+", "_"), packed(t, "x", v))
	}
	r.push("x", "2", packed(t, "x", "2.0.0")) // a tag that moves
	r.push("x", "latest", packed(t, "x", "1.0.0"))
	for wanted, version := range map[string]string{
		"1.0.0":         "1.0.0",
		"v1.0.0":        "1.0.0",
		"^1":            "1.1.0",
		"~1.2.0-0":      "1.2.0-rc.1",
		"^2":            "2.0.0",
		"2":             "2.0.0",
		"3.0.0+build.1": "3.0.0+build.1",
		"^3":            "3.0.0+build.2",
		"":              "v4.0.0",
	} {
		t.Run(wanted, func(t *testing.T) {
			f := fetcher(t, r.host())
			s := source(t, nil, requirementYAML(r.url()+"/", wanted))
			l := lock(t, f, s, dependency.Lock{})
			b := packed(t, "x", version)
			want := []dependency.LockedChart{{Name: "x", Repository: r.url() + "/", Wanted: wanted, Version: version, Digest: sum(b)}}
			if d := cmp.Diff(want, l.Charts["cluster-addon/cni"]); d != "" {
				t.Fatal(d)
			}
			r.requests.Store(0)
			v := vendor(t, f, with(t, s, l))
			if !bytes.Equal(v["cluster-addon/cni"]["charts/x-"+version+".tgz"], b) || r.requests.Load() != 0 {
				t.Errorf("%d requests for what is in the cache", r.requests.Load())
			}
			f.Cache = ""
			v = vendor(t, f, with(t, s, l))
			if !bytes.Equal(v["cluster-addon/cni"]["charts/x-"+version+".tgz"], b) || r.requests.Load() == 0 {
				t.Errorf("%d requests for what is in no cache", r.requests.Load())
			}
		})
	}
}

func TestOCIRefused(t *testing.T) {
	r := startRegistry(t)
	r.push("x", "1.0.0", packed(t, "x", "1.0.0"))
	r.push("x", "5.0.0", packed(t, "evil", "5.0.0"))
	r.push("x", "6.0.0", packed(t, "x", "0.6.0"))
	r.push("x", "7.0.0", []byte("no archive"))
	for name, c := range map[string]struct{ repository, version, message string }{
		"no version that fits": {"REPO", "^9", "REPO does not have version ^9 of x; its newest is 7.0.0"},
		"another name":         {"REPO", "^5", "what REPO has as x 5.0.0 is no such chart: there is no x/Chart.yaml in it"},
		"another version":      {"REPO", "^6", `what REPO has as x 6.0.0 is another chart, "x" in version "0.6.0"; ask who publishes it`},
		"no archive":           {"REPO", "^7", "what REPO has as x 7.0.0 cannot be used: it is not a gzip-compressed archive: gzip: invalid header"},
		"an unknown chart":     {"REPO/none", "^1", "listing REPO/none/x: there is no REPO/none/x"},
		"a tag":                {"REPO:1", "^1", `"REPO:1" is no place of charts; write oci://host/path`},
		"with a password":      {"oci://u:secret@HOST/charts", "^1", "a reference has no user and no password in it; give them apart"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("REPO", r.url(), "HOST", r.host())
			_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(text.Replace(c.repository), c.version)), dependency.Lock{}, false)
			fails(t, err, text.Replace(c.message))
		})
	}
}

// A tag that was moved to another chart after it was locked is an error.
func TestOCIRepublished(t *testing.T) {
	r := startRegistry(t)
	r.push("x", "1.0.0", packed(t, "x", "1.0.0"))
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	old := lock(t, fetcher(t, r.host()), s, dependency.Lock{})
	other := tgz(t, map[string]string{"x/Chart.yaml": "name: x\nversion: 1.0.0\n", "x/templates/evil.yaml": "evil"})
	r.push("x", "1.0.0", other)
	message := "x 1.0.0 of " + r.url() + " has another content than it was locked with, " + sum(other) + " instead of " + sum(packed(t, "x", "1.0.0")) +
		"; ask who publishes it, and if the change is right, remove its entry from stack.lock and run polder stack lock"
	for _, upgrade := range []bool{false, true} {
		_, err := fetcher(t, r.host()).Lock(t.Context(), s, old, upgrade)
		fails(t, err, message)
	}
	_, err := fetcher(t, r.host()).Vendor(t.Context(), with(t, s, old))
	fails(t, err, message)
}

// A Helm repository may list what is in a registry, as some large ones do.
func TestListedInARegistry(t *testing.T) {
	o := startRegistry(t)
	b := packed(t, "x", "1.0.0+a")
	o.push("x", "1.0.0_a", b)
	address := o.url() + "/x:1.0.0_a"
	r := serve(t, entry("1.0.0+a", address, sum(b)))
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	f := fetcher(t, r.host(), o.host())
	l := lock(t, f, s, dependency.Lock{})
	if got := l.Charts["cluster-addon/cni"][0]; got.URL != address || got.Digest != sum(b) {
		t.Errorf("%+v", got)
	}
	f.Cache = ""
	r.asked()
	v := vendor(t, f, with(t, s, l))
	if !bytes.Equal(v["cluster-addon/cni"]["charts/x-1.0.0+a.tgz"], b) || len(r.asked()) != 0 {
		t.Error("it was not fetched from where it was locked")
	}
}
