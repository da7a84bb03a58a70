package kubelet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/providers/local/process"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func specWith(args []string) process.Spec { return process.Spec{Args: args} }

func TestLastLinesOffset(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int64
		want string
	}{
		{"a\nb\nc\n", 0, ""}, {"a\nb\nc\n", 1, "c\n"}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc\n", 3, "a\nb\nc\n"}, {"a\nb\nc\n", 1 << 60, "a\nb\nc\n"},
		{"a\nb", 1, "b"}, {"a\nb", 2, "a\nb"}, {"", 1, ""}, {"", 0, ""}, {"\n", 1, "\n"}, {"\n\n\n", 2, "\n\n"}, {"a", 5, "a"}, {"a\n\nb\n", 2, "\nb\n"},
	} {
		if got := c.in[lastLinesOffset([]byte(c.in), c.n):]; got != c.want {
			t.Errorf("last %d of %q: %q, want %q", c.n, c.in, got, c.want)
		}
	}
}

func TestLogOptions(t *testing.T) {
	for query, want := range map[string]string{
		"":                                "{false -1 -1}",
		"follow=true":                     "{true -1 -1}",
		"follow=false&tailLines=3":        "{false 3 -1}",
		"limitBytes=10&tailLines=0":       "{false 0 10}",
		"tailLines=-1":                    `tailLines="-1" is not`,
		"limitBytes=1e3":                  `limitBytes="1e3" is not`,
		"tailLines=99999999999999999999":  "is not a number",
		"timestamps=true&sinceSeconds=10": "{false -1 -1}",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		o, err := parseLogOptions(q)
		got := fmt.Sprint(o)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestCopyLog(t *testing.T) {
	long := strings.Repeat("0123456789\n", maxTail/10)
	for name, c := range map[string]struct {
		log  string
		o    logOptions
		want string
	}{
		"all":                    {"a\nb\n", logOptions{tail: -1, limit: -1}, "a\nb\n"},
		"the end":                {"a\nb\n", logOptions{tail: 1, limit: -1}, "b\n"},
		"some bytes":             {"a\nb\n", logOptions{tail: -1, limit: 3}, "a\nb"},
		"some bytes of the end":  {"a\nbcd\n", logOptions{tail: 1, limit: 2}, "bc"},
		"nothing":                {"a\nb\n", logOptions{tail: 0, limit: -1}, ""},
		"no bytes, though asked": {"a\nb\n", logOptions{tail: -1, limit: 0, follow: true}, ""},
		"followed up to a limit": {"a\nb\n", logOptions{tail: -1, limit: 4, follow: true}, "a\nb\n"},
		"a long one":             {long, logOptions{tail: -1, limit: -1}, long},
		"more than is looked at": {long, logOptions{tail: 1 << 40, limit: -1}, long[len(long)-maxTail:]},
		"an empty one":           {"", logOptions{tail: 5, limit: -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := c.o.copyLog(t.Context(), &out, file); err != nil || out.String() != c.want {
				t.Errorf("%.100q, %v; want %.100q", out.String(), err, c.want)
			}
		})
	}
}

func TestFollowAcrossRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString(text)
		_ = f.Close()
	}
	add("old\n1\n")
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- logOptions{follow: true, tail: 1, limit: -1}.copyLog(ctx, w, file); _ = w.Close() }()
	lines := bufio.NewScanner(r)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("read %q, want %q", lines.Text(), want)
		}
	}
	next("1")
	add("2\n")
	next("2")
	for i := range 3 {
		add("before\n")
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
		next("before")
		add(fmt.Sprintf("after %d\n", i))
		next(fmt.Sprintf("after %d", i))
	}
	cancel()
	if err := <-done; err != nil || lines.Scan() {
		t.Errorf("ended with %v, and %q", err, lines.Text())
	}
}

func TestReopenIfRotated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, want bool) {
		t.Helper()
		got, err := reopenIfRotated(f, file)
		if err != nil || (got == f) != want {
			t.Errorf("%s: %v, the same: %t", what, err, got == f)
		}
		f = got
	}
	same("not rotated", true)
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	same("between two files", true)
	if err := os.WriteFile(file, []byte("def"), 0o600); err != nil {
		t.Fatal(err)
	}
	same("not read to its end", true)
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	same("read to its end", false)
	if b, err := io.ReadAll(f); err != nil || string(b) != "def" {
		t.Errorf("read %q, %v", b, err)
	}
	_ = f.Close()
}

func TestLogsHandler(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	writeManifest(t, k, "s", manifestOf("kube-scheduler", 0)) // waits for an API server
	syncPods(t, k)
	waitUntilRunning(t, k, "etcd")
	processtest.Eventually(t, "it has printed", func() bool { b, _ := os.ReadFile(k.cfg.Dir.LogFile("etcd")); return len(b) > 0 })
	for path, want := range map[string]string{
		"/containerLogs/kube-system/etcd-node-1/etcd":                "200 started as etcd\n",
		"/containerLogs/kube-system/etcd-node-1/etcd?tailLines=0":    "200 ",
		"/containerLogs/kube-system/etcd-node-1/etcd?tailLines=x":    `400 tailLines="x" is not`,
		"/containerLogs/kube-system/kube-scheduler-node-1/x":         "404 kube-scheduler-node-1 has printed nothing yet",
		"/containerLogs/kube-system/etcd-node-2/etcd":                "200 Container etcd of pod kube-system/etcd-node-2 is simulated on node node-1",
		"/containerLogs/default/etcd-node-1/etcd":                    "200 Container etcd of pod default/etcd-node-1 is simulated",
		"/containerLogs/kube-system/etcd/etcd":                       "200 Container etcd of pod kube-system/etcd is simulated",
		"/containerLogs/kube-system/..%2f..%2fetc%2fpasswd/etcd":     "200 Container etcd of pod kube-system/../../etc/passwd is simulated",
		"/containerLogs/kube-system/etcd-node-1/etcd?limitBytes=-10": `400 limitBytes="-10" is not`,
	} {
		w := httptest.NewRecorder()
		k.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestFollowingASimulatedPodEndsWithTheRequest(t *testing.T) {
	k := newKubelet(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/containerLogs/default/p/c?follow=true", nil))
	}()
	cancel()
	<-done
	if !w.Flushed || !strings.Contains(w.Body.String(), "prints nothing") {
		t.Errorf("flushed: %t, %q", w.Flushed, w.Body)
	}
}
