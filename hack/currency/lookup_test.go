package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// startProxy makes the go command ask a proxy on this computer, whose answers depend on the patch.
func startProxy(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := path.Base(r.URL.Path)
		version := strings.TrimSuffix(strings.TrimSuffix(file, ".info"), ".mod")
		status := map[string]int{"v1.0.3": http.StatusForbidden, "v1.0.4": http.StatusNotFound, "v1.0.5": http.StatusGone,
			"v1.0.6": http.StatusInternalServerError}[version]
		switch {
		case version == "v1.0.7":
			<-ended
		case status != 0:
			http.Error(w, "no", status)
		case version == "v1.0.8":
			http.Error(w, "fetch timed out", http.StatusNotFound)
		case strings.HasSuffix(file, ".info"):
			_, _ = w.Write([]byte(`{"Version":"` + version + `","Time":"2026-08-20T11:51:43Z"}`))
		case version == "v1.0.2":
			http.Error(w, "no go.mod", http.StatusNotFound)
		default:
			_, _ = w.Write([]byte("module example.com/m\n"))
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(ended) })
	for k, v := range map[string]string{
		"GOPROXY": s.URL, "GOSUMDB": "off", "GOPRIVATE": "", "GONOPROXY": "", "GOFLAGS": "-modcacherw", "GOENV": "off", "GOMODCACHE": t.TempDir(),
		"GOWORK": "/no/such/go.work",
	} {
		t.Setenv(k, v)
	}
}

func TestGoCommand(t *testing.T) {
	startProxy(t)
	g := goCommand{Dir: t.TempDir(), Timeout: time.Minute}
	when := time.Date(2026, 8, 20, 11, 51, 43, 0, time.UTC)
	for version, want := range map[string]moduleRelease{"v1.0.1": {Time: when, Verified: true}, "v1.0.2": {Time: when}} {
		if r, err := g.lookup(t.Context(), "example.com/m", version); r != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", version, r, err, want)
		}
	}
	for version, want := range map[string]error{"v1.0.3": errRefused, "v1.0.4": errUnknown, "v1.0.5": errUnknown} {
		if _, err := g.lookup(t.Context(), "example.com/m", version); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", version, err, want)
		}
	}
	for _, version := range []string{"v1.0.6", "v1.0.8", "latest"} {
		_, err := g.lookup(t.Context(), "example.com/m", version)
		if err == nil || errors.Is(err, errUnknown) || errors.Is(err, errRefused) || strings.Count(err.Error(), "example.com/m@") != 1 {
			t.Errorf("%s: %v; want another error, and the module named once", version, err)
		}
	}
}

func TestGoCommandWithoutAnswer(t *testing.T) {
	startProxy(t)
	g := goCommand{Dir: t.TempDir(), Timeout: 500 * time.Millisecond}
	_, err := g.lookup(t.Context(), "example.com/m", "v1.0.7")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "example.com/m@v1.0.7") {
		t.Errorf("%v; want that there was no answer in time", err)
	}
	t.Setenv("GOPROXY", "http://127.0.0.1:1")
	g.Timeout = time.Minute
	if _, err := g.lookup(t.Context(), "example.com/m", "v1.0.4"); err == nil || errors.Is(err, errUnknown) || errors.Is(err, errRefused) {
		t.Errorf("nobody there: %v; want another error", err)
	}
	t.Setenv("PATH", "")
	if _, err := g.lookup(t.Context(), "example.com/m", "v1.0.1"); err == nil || !strings.Contains(err.Error(), "it did not run") {
		t.Errorf("no go command: %v", err)
	}
}

func TestParseGoList(t *testing.T) {
	for name, text := range map[string]string{
		"another version": `{"Version":"v1.0.2","Time":"2026-08-20T11:51:43Z"}`,
		"no time":         `{"Version":"v1.0.1"}`,
		"nothing":         "",
	} {
		if r, err := parseGoList([]byte(text), "v1.0.1"); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]error{
		"m@v1: reading https://p/v1.info: 403 Forbidden\n\tserver response: not available":       errRefused,
		"m@v1: invalid version: unknown revision v1.2.3":                                         errUnknown,
		"example.com/timeout@v1: reading https://p/timeout/v1.info: 404 Not Found":               errUnknown,
		"m@v1: invalid version: +incompatible suffix not allowed: module contains a go.mod file": errUnknown,
	} {
		if err := classifyError(text); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"m@v1: module lookup disabled by GOPROXY=off",
		"m@v1: invalid version: git ls-remote: fatal: unable to access: Could not resolve host",
		"m@v1: reading https://p/v1.info: 404 Not Found\n\tserver response: not found: fetch timed out",
		"m@v1: reading https://p/v1.info: 429 Too Many Requests",
	} {
		if err := classifyError(text); errors.Is(err, errUnknown) || errors.Is(err, errRefused) || err.Error() != strings.Join(strings.Fields(text), " ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLimitParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int32
		lookup := limitParallel(func(ctx context.Context, _, _ string) (moduleRelease, error) {
			now.Add(1)
			defer now.Add(-1)
			<-ctx.Done()
			return moduleRelease{}, nil
		}, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for range 5 {
			go lookup(ctx, "example.com/m", "v1.0.0")
		}
		synctest.Wait()
		if n := now.Load(); n != 2 {
			t.Errorf("%d questions are under way, want 2", n)
		}
		waiting, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := lookup(waiting, "example.com/m", "v1.0.0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a turn ends in %v", err)
		}
		cancel()
		synctest.Wait()
	})
}
