package dependency_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/fetch"
)

// endless is a handler that never stops sending.
func endless(w http.ResponseWriter, r *http.Request) {
	b := bytes.Repeat([]byte("- x\n"), 16<<10)
	for r.Context().Err() == nil {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// slow is a handler that sends the beginning of an answer, and then nothing.
func slow(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte("entries:"))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestServersWithoutEnd(t *testing.T) {
	long := func(n int64) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", fmt.Sprint(n)) }
	}
	circle := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }
	for name, c := range map[string]struct {
		at, message string
		do          http.HandlerFunc
	}{
		"an endless list":        {"index.yaml", "asking REPO what it has: HOST sends more than the 33554432 bytes that are taken", endless},
		"a list that is too big": {"index.yaml", "asking REPO what it has: HOST sends more than the 33554432 bytes that are taken", long(32<<20 + 1)},
		"a slow list":            {"index.yaml", "asking REPO what it has: HOST took too long, and was given up", slow},
		"a list in circles":      {"index.yaml", "asking REPO what it has: HOST redirects more than 5 times", circle},
		"an endless chart":       {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST sends more than the 5242880 bytes that are taken", endless},
		"a chart too big":        {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST sends more than the 5242880 bytes that are taken", long(5<<20 + 1)},
		"a slow chart":           {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST took too long, and was given up", slow},
		"a chart in circles":     {"x-1.0.0.tgz", "fetching REPO/x-1.0.0.tgz: HOST redirects more than 5 times", circle},
	} {
		t.Run(name, func(t *testing.T) {
			r := withVersions(t, "1.0.0")
			r.handle("/charts/"+c.at, c.do)
			f := fetcher(t)
			limit := 30 * time.Second
			if strings.Contains(name, "slow") {
				limit = 500 * time.Millisecond
			}
			f.Client = fetch.New(fetch.Policy{Trusted: []string{r.host()}}, fetch.Limits{Time: limit})
			_, err := f.Lock(t.Context(), source(t, nil, requirementYAML(r.url(), "^1")), dependency.Lock{}, false)
			fails(t, err, strings.NewReplacer("REPO", r.url(), "HOST", r.host()).Replace(c.message))
		})
	}
}

// Nothing leads to a host that is not trusted: no redirect, no index, and no address of a repository.
func TestNoWayInside(t *testing.T) {
	canary := withVersions(t, "1.0.0")
	to := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, canary.URL+r.URL.Path+"?token=secret", http.StatusFound)
	}
	for name, c := range map[string]struct {
		redirected, repository, message string
		entry                           string
	}{
		"the list is elsewhere": {redirected: "index.yaml", message: "asking REPO what it has: CANARY is asked for by plain http, and is not trusted; use https"},
		"the chart is elsewhere": {redirected: "x-1.0.0.tgz",
			message: "fetching REPO/x-1.0.0.tgz: CANARY is asked for by plain http, and is not trusted; use https"},
		"listed elsewhere": {entry: entry("1.0.0", canary.url()+"/x-1.0.0.tgz", ""),
			message: "fetching http://CANARY/charts/x-1.0.0.tgz: CANARY is asked for by plain http, and is not trusted; use https"},
		"listed in a registry": {entry: entry("1.0.0", "oci://CANARY/charts/x:1.0.0", ""),
			message: "fetching oci://CANARY/charts/x:1.0.0: CANARY is asked for by plain http, and is not trusted; use https"},
		"listed as cloud's": {entry: entry("1.0.0", "https://169.254.169.254/x.tgz", ""),
			message: "fetching https://169.254.169.254/x.tgz: 169.254.169.254 has the link-local address 169.254.169.254, which nobody is connected to"},
		"the repository by http": {repository: "http://CANARY/charts",
			message: "asking http://CANARY/charts what it has: CANARY is asked for by plain http, and is not trusted; use https"},
		"the repository by https": {repository: "https://CANARY/charts",
			message: "asking https://CANARY/charts what it has: 127.0.0.1 has the loopback address 127.0.0.1, and is not trusted; if you mean this host, name it as trusted"},
		"a registry": {repository: "oci://CANARY/charts",
			message: "listing oci://CANARY/charts/x: CANARY is asked for by plain http, and is not trusted; use https"},
		"a registry by its port": {repository: "oci://127.0.0.1:1/charts",
			message: "listing oci://127.0.0.1:1/charts/x: 127.0.0.1:1 is asked for by plain http, and is not trusted; use https"},
	} {
		t.Run(name, func(t *testing.T) {
			r := withVersions(t, "1.0.0")
			if c.entry != "" {
				r.list(strings.ReplaceAll(c.entry, "CANARY", canary.host()))
			}
			if c.redirected != "" {
				r.handle("/charts/"+c.redirected, to)
			}
			text := strings.NewReplacer("REPO", r.url(), "CANARY", canary.host())
			at := r.url()
			if c.repository != "" {
				at = text.Replace(c.repository)
			}
			_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(at, "^1")), dependency.Lock{}, false)
			fails(t, err, text.Replace(c.message))
			if asked := canary.asked(); len(asked) > 0 {
				t.Errorf("the canary was asked for %s", asked)
			}
		})
	}
}

// Whatever bit of a chart is changed after it was locked, it is found out.
func TestTampering(t *testing.T) {
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	s = with(t, s, lock(t, fetcher(t, r.host()), s, dependency.Lock{}))
	sound := packed(t, "x", "1.0.0")
	random := rand.New(rand.NewPCG(1, 2))
	f := fetcher(t, r.host())
	f.Cache = ""
	for range 1000 {
		b, bit := bytes.Clone(sound), random.IntN(len(sound)*8)
		b[bit/8] ^= 1 << (bit % 8)
		r.put("/charts/x-1.0.0.tgz", b)
		if v, err := f.Vendor(t.Context(), s); err == nil || len(v) != 0 || !strings.Contains(err.Error(), "has another content than it was locked with") {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	r.put("/charts/x-1.0.0.tgz", sound)
	vendor(t, f, s)
}

// Archives that lead outside, or are far larger than they look, are not locked.
func TestHostileCharts(t *testing.T) {
	header := func(name string, kind byte, link string, size int) *tar.Header {
		return &tar.Header{Name: name, Typeflag: kind, Linkname: link, Size: int64(size), Mode: 0o644}
	}
	for name, c := range map[string]struct {
		entry   *tar.Header
		message string
	}{
		"outside":  {header("../x", tar.TypeReg, "", 0), `entry "../x" has a path that is not clean, or leads outside`},
		"absolute": {header("/etc/x", tar.TypeReg, "", 0), `entry "/etc/x" has an absolute path`},
		"a link": {header("x/values.yaml", tar.TypeSymlink, "/etc/passwd", 0),
			`entry "x/values.yaml" is a symbolic link; only files and directories are taken`},
		"a hard link":     {header("x/values.yaml", tar.TypeLink, "/etc/passwd", 0), `entry "x/values.yaml" is a hard link; only files and directories are taken`},
		"Chart.yaml once": {header("x/Chart.yaml", tar.TypeReg, "", 0), `entry "x/Chart.yaml" is there twice`},
		"a bomb":          {header("x/values.yaml", tar.TypeReg, "", 4<<20), "unpacked, the archive is more than 200 times as large; that is no real content"},
		"a large file":    {header("x/values.yaml", tar.TypeReg, "", 6<<20), `entry "x/values.yaml" has 6 MiB; at most 5 MiB are taken`},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			w := tar.NewWriter(z)
			const text = "name: x\nversion: 1.0.0\n"
			for _, err := range []error{
				w.WriteHeader(header("x/Chart.yaml", tar.TypeReg, "", len(text))), write(w, text),
				w.WriteHeader(c.entry), write(w, strings.Repeat("\x00", int(c.entry.Size))), w.Close(), z.Close(),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			r := withVersions(t, "1.0.0")
			r.put("/charts/x-1.0.0.tgz", b.Bytes())
			_, err := fetcher(t, r.host()).Lock(t.Context(), source(t, nil, requirementYAML(r.url(), "^1")), dependency.Lock{}, false)
			fails(t, err, "what "+r.url()+" has as x 1.0.0 cannot be used: "+c.message)
		})
	}
}

func write(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}
