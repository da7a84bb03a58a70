package registry_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/polder-kaas/polder/stack/fetch"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

const (
	chartType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	configType = "application/vnd.cncf.helm.config.v1+json"
	mostChart  = 1 << 20
)

// charts opens the path above a repository, on a host that is trusted.
func charts(t testing.TB, ref string, o stacks.Options) *stacks.Charts {
	t.Helper()
	place := strings.TrimSuffix(ref, "/stacks")
	if o.Trusted == nil {
		o.Trusted = []string{hostOf(ref)}
	}
	c, err := stacks.OpenCharts(place, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hostOf(ref string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(ref, "oci://"), "/")
	return host
}

func chartLayer(mediaType string, d digest.Digest, size int) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, mediaType, d, size)
}

func chartManifest(layers ...string) string {
	return `{"schemaVersion":2,"mediaType":"` + manifestType + `","config":{"mediaType":"` + configType + `","digest":"` + digest.FromString("{}").String() +
		`","size":2},"layers":[` + strings.Join(layers, ",") + `]}`
}

// pushChart writes bytes as the chart "stacks" of the path above.
func pushChart(t testing.TB, ref, tag string, b []byte) digest.Digest {
	t.Helper()
	d := putBlob(t, ref, b)
	putManifest(t, ref, tag, chartManifest(chartLayer(chartType, d, len(b))))
	return d
}

func TestCharts(t *testing.T) {
	ref := start(t)
	provenance := putBlob(t, ref, []byte("signed"))
	d := putBlob(t, ref, []byte("two"))
	pushChart(t, ref, "1.0.0", []byte("one"))
	putManifest(t, ref, "2.0.0_build.1",
		chartManifest(chartLayer("application/vnd.cncf.helm.chart.provenance.v1.prov", provenance, 6), chartLayer(chartType, d, 3)))
	for name, place := range map[string]string{"a path": "oci://" + hostOf(ref) + "/kaas", "a slash at the end": "oci://" + hostOf(ref) + "/kaas/"} {
		c, err := stacks.OpenCharts(place, stacks.Options{Trusted: []string{hostOf(ref)}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Versions(t.Context(), "stacks")
		slices.Sort(got)
		if d := cmp.Diff([]string{"1.0.0", "2.0.0+build.1"}, got); d != "" || err != nil {
			t.Error(name, d, err)
		}
		for version, want := range map[string]string{"1.0.0": "one", "2.0.0+build.1": "two"} {
			if b, err := c.Fetch(t.Context(), "stacks", version, 3); string(b) != want || err != nil {
				t.Errorf("%s %s: %q, %v", name, version, b, err)
			}
		}
	}
}

// A registry may have charts without a path above them.
func TestChartsAtTheTop(t *testing.T) {
	host := hostOf(start(t))
	pushChart(t, "oci://"+host+"/top", "1.0.0", []byte("one"))
	for _, place := range []string{"oci://" + host, "oci://" + host + "/", "oci://" + strings.ToUpper(host)} {
		c, err := stacks.OpenCharts(place, stacks.Options{Trusted: []string{host}})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.Fetch(t.Context(), "top", "1.0.0", 3); string(b) != "one" || err != nil {
			t.Errorf("%s: %q, %v", place, b, err)
		}
	}
}

func TestNoPlaceOfCharts(t *testing.T) {
	for place, want := range map[string]string{
		"":                          `"" is no place of charts; write oci://host/path`,
		"charts":                    `"charts" is no place of charts; write oci://host/path`,
		"https://x.example/a":       `"https://x.example/a" is no place of charts; write oci://host/path`,
		"oci://x.example/a:1":       `"oci://x.example/a:1" is no place of charts; write oci://host/path`,
		"oci://x.example/a@sha256:": `"oci://x.example/a@sha256:" is no place of charts; write oci://host/path`,
		"oci://":                    `"" is no host`,
		"oci:///a":                  `"" is no host`,
		"oci://u:secret@x.example":  "a reference has no user and no password in it; give them apart",
		"oci://x.example/../a":      `"../a/chart" is no name of a repository: it is of lower-case letters, digits, and single dots, dashes and slashes between them`,
		"oci://x.example/a?b":       `"a?b/chart" is no name of a repository: it is of lower-case letters, digits, and single dots, dashes and slashes between them`,
	} {
		if c, err := stacks.OpenCharts(place, stacks.Options{}); c != nil || err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", place, err, want)
		}
	}
	c := charts(t, "oci://x.example/kaas/stacks", stacks.Options{})
	for _, name := range []string{"", "..", "../a", "a/b", "A", "a:1", "a@b", "x\n"} {
		const want = "is no name of a chart in a registry: it is of lower-case letters, digits, and single dots and dashes between them"
		if _, err := c.Versions(t.Context(), name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := c.Fetch(t.Context(), name, "1.0.0", 1); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestHostileCharts(t *testing.T) {
	none := digest.FromString("none")
	for name, c := range map[string]struct{ manifest, want string }{
		"no chart": {chartManifest(chartLayer("application/octet-stream", none, 1)), `there is no Helm chart in it, but "` + configType + `"`},
		"no layers": {`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json"}}`,
			`there is no Helm chart in it, but "application/vnd.oci.image.config.v1+json"`},
		"a large chart":       {chartManifest(chartLayer(chartType, none, mostChart+1)), "the chart has 1048577 bytes; at most 1048576 are taken"},
		"a negative size":     {chartManifest(chartLayer(chartType, none, -1)), "the chart has -1 bytes; at most 1048576 are taken"},
		"a path as digest":    {chartManifest(chartLayer(chartType, "../../x", 1)), `"../../x" is no digest of sha256`},
		"a chart not there":   {chartManifest(chartLayer(chartType, none, 1)), "it is not in PLACE/stacks"},
		"no manifest":         {"[]", "the manifest is no JSON of a manifest"},
		"a list of manifests": {`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`, `there is no Helm chart in it, but ""`},
	} {
		t.Run(name, func(t *testing.T) {
			ref := start(t)
			putManifest(t, ref, "1.0.0", c.manifest)
			want := "fetching " + ref + ":1.0.0: " + strings.ReplaceAll(c.want, "PLACE/stacks", ref)
			if b, err := charts(t, ref, stacks.Options{}).Fetch(t.Context(), "stacks", "1.0.0", mostChart); b != nil || err == nil || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
	ref := start(t)
	pushChart(t, ref, "1.0.0", []byte("one"))
	c := charts(t, ref, stacks.Options{})
	for _, version := range []string{"2.0.0", "1.0.0/../../x", "", "sha256:x", strings.Repeat("1", 10_000)} {
		if b, err := c.Fetch(t.Context(), "stacks", version, mostChart); b != nil || err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 800 {
			t.Errorf("version %.20q: %v", version, err)
		}
	}
	if _, err := c.Versions(t.Context(), "none"); !errors.Is(err, stacks.ErrNotFound) {
		t.Error(err)
	}
}

func TestTamperedChart(t *testing.T) {
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	longer := func(b []byte) []byte { return append(b, 'x') }
	for name, around := range map[string]middleware{
		"the chart":       change("^GET .*/blobs/", flip),
		"the manifest":    change("^GET .*/manifests/", flip),
		"a longer chart":  change("^GET .*/blobs/", longer),
		"a shorter chart": change("^GET .*/blobs/", func(b []byte) []byte { return b[1:] }),
		"half a chart":    cut("^GET .*/blobs/"),
	} {
		ref := start(t, around)
		pushChart(t, ref, "1.0.0", []byte("a chart of some bytes"))
		b, err := charts(t, ref, stacks.Options{}).Fetch(t.Context(), "stacks", "1.0.0", mostChart)
		if b != nil || err == nil || !strings.HasPrefix(err.Error(), "fetching "+ref+":1.0.0: ") {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestSlowCharts(t *testing.T) {
	hang := at("^GET ", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() })
	ref := start(t, hang)
	for name, o := range map[string]stacks.Options{
		"a request": {Limits: fetch.Limits{Time: 100 * time.Millisecond}},
		"the whole": {Timeout: 100 * time.Millisecond},
	} {
		c := charts(t, ref, o)
		_, listErr := c.Versions(t.Context(), "stacks")
		_, fetchErr := c.Fetch(t.Context(), "stacks", "1.0.0", mostChart)
		for _, err := range []error{listErr, fetchErr} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The author of a chart chooses the host of a dependency, not the user: private addresses are connected
// to only if the host is trusted.
func TestUntrustedCharts(t *testing.T) {
	var c count
	ref := start(t, c.middleware)
	for name, o := range map[string]stacks.Options{
		"nobody is trusted":  {Trusted: []string{}},
		"others are trusted": {Trusted: []string{"127.0.0.1:1", "localhost"}},
		"plain http":         {Trusted: []string{}, PlainHTTP: true},
	} {
		charts := charts(t, ref, o)
		_, listErr := charts.Versions(t.Context(), "stacks")
		_, fetchErr := charts.Fetch(t.Context(), "stacks", "1.0.0", mostChart)
		if !errors.Is(listErr, fetch.ErrRefused) || !errors.Is(fetchErr, fetch.ErrRefused) || c.of(http.MethodGet, http.MethodHead) != 0 {
			t.Errorf("%s: %v, %v; %v", name, listErr, fetchErr, c.n)
		}
	}
}

// Credentials that a user gave for the own registry are not sent to every registry that a chart names.
func TestCredentialsOfCharts(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	ref := start(t, at("^GET ", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		sent = append(sent, r.Header.Get("Authorization"))
		mu.Unlock()
		next.ServeHTTP(w, r)
	}), basicAuth("user", "hunter22"))
	b := []byte("one")
	put := func(path, mediaType string, b []byte) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+hostOf(ref)+"/v2/kaas/stacks"+path, bytes.NewReader(b))
		req.SetBasicAuth("user", "hunter22")
		req.Header.Set("Content-Type", mediaType)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
	}
	put("/blobs/uploads/1?digest="+digest.FromBytes(b).String(), "application/octet-stream", b)
	put("/manifests/1.0.0", manifestType, []byte(chartManifest(chartLayer(chartType, digest.FromBytes(b), len(b)))))
	given := stacks.Options{Username: "user", Password: "hunter22", Trusted: []string{hostOf(ref)}}
	if got, err := charts(t, ref, given).Fetch(t.Context(), "stacks", "1.0.0", mostChart); string(got) != "one" || err != nil {
		t.Errorf("trusted: %q, %v", got, err)
	}
	none := stacks.Options{Trusted: []string{hostOf(ref)}}
	_, err := charts(t, ref, none).Versions(t.Context(), "stacks")
	if want := "listing " + ref + ": registry " + hostOf(ref) +
		" asks for credentials (401); give a user and a password"; !errors.Is(err, stacks.ErrCredentials) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	// Only fetch knows this spelling, so the host may be connected to, and is still not named.
	named := []string{"127.0.0.1."}
	for name, o := range map[string]stacks.Options{
		"a user":  {Username: "user", Password: "hunter22", Trusted: named},
		"a token": {Token: "hunter22", Trusted: named},
	} {
		mu.Lock()
		sent = nil
		mu.Unlock()
		_, err := charts(t, ref, o).Versions(t.Context(), "stacks")
		if want := ": those that there are go only to hosts that are named as trusted"; !errors.Is(err, stacks.ErrCredentials) ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		mu.Lock()
		if len(sent) == 0 || strings.Join(sent, "") != "" {
			t.Errorf("%s: %q was sent", name, sent)
		}
		mu.Unlock()
	}
	file := filepath.Join(t.TempDir(), "config.json")
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, hostOf(ref), base64.StdEncoding.EncodeToString([]byte("user:hunter22")))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := charts(t, ref, stacks.Options{DockerConfig: file, Trusted: named}).Fetch(t.Context(), "stacks", "1.0.0", mostChart); string(got) != "one" ||
		err != nil {
		t.Errorf("those for the host: %q, %v", got, err)
	}
}
