package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// repository gives a repository with something of everything.
func repository() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"go.mod": file(`module example.com/main
require (
	example.com/current v1.0.0
	example.com/behind/v2 v2.1.0
	example.com/commit v0.0.0-20260210185600-b8788abfbbc2
	example.com/near v1.0.0
	go.etcd.io/etcd/client/v3 v3.6.14
	k8s.io/api v0.0.0
	k8s.io/kubernetes v1.36.3
	sigs.k8s.io/cluster-api v1.14.2
)
replace k8s.io/api => k8s.io/api v0.36.3
replace example.com/near => ./near
`),
		"hack/tools/go.mod":           file("module example.com/tools\nrequire example.com/behind/v2 v2.1.0\n"),
		"test/go.mod":                 file("module example.com/test\nrequire example.com/x v1.0.0 // indirect\n"),
		"stacks/local/scs/stack.yaml": file("kubernetesVersions: [v1.34.9, v1.36.3]\n"),
		supportFile: file(`checked: 2026-07-01
projects:
- name: Kubernetes
  modules: [k8s.io/kubernetes]
  staging: k8s.io
  minors:
  - {minor: "1.36", released: 2026-04-22, maintenance: 2026-11-01, endOfSupport: 2027-06-28}
  - {minor: "1.34", released: 2025-08-27, maintenance: 2026-08-27, endOfSupport: 2026-10-27}
- name: etcd
  modules: [go.etcd.io/etcd]
  minors: [{minor: "3.6", released: 2025-05-15, until: when 3.8 is released}]
- name: Cluster API
  modules: [sigs.k8s.io/cluster-api]
  minors: [{minor: "1.14", released: 2026-08-18, endOfSupport: 2027-08-18, estimated: true}]
`),
	}
}

func proxy() *fakeProxy {
	return &fakeProxy{
		Has: map[string]string{
			"example.com/behind/v2@v2.1.2": "2026-06-03", "example.com/behind/v2@v2.3.0": "2026-10-03",
			"k8s.io/api@v0.36.4": "2026-11-01", "k8s.io/api@v0.36.5": "2026-11-10",
			"k8s.io/kubernetes@v1.36.4": "!2026-10-31", "k8s.io/kubernetes@v1.37.0": "2026-08-26", "k8s.io/kubernetes@v1.37.1": "2026-09-23",
		},
		Refuses: []string{"example.com/behind/v2@v2.1.1", "example.com/current@v1.0.1", "k8s.io/kubernetes@v1.36.5"},
	}
}

func configOf(t *testing.T, root fstest.MapFS, p *fakeProxy) config {
	return config{Root: root, ModFiles: []string{"go.mod", "hack/tools/go.mod", "test/go.mod"}, Lookup: p.lookup, Now: day(t, "2026-11-17")}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	code, err := check(t.Context(), configOf(t, repository(), proxy()), &out)
	if err != nil || code != exitBehind {
		t.Fatalf("exit %d, %v; want %d", code, err, exitBehind)
	}
	const golden = "testdata/report.txt"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		has   map[string]string
		stack string
		want  int
	}{
		"nothing newer":               {nil, "v1.36.3", exitCurrent},
		"newer minor of a module":     {map[string]string{"example.com/current@v1.1.0": "2024-01-01"}, "v1.36.3", exitCurrent},
		"new patch of a module":       {map[string]string{"example.com/current@v1.0.1": "2026-10-17"}, "v1.36.3", exitCurrent},
		"old patch of a module":       {map[string]string{"example.com/current@v1.0.1": "2026-10-16"}, "v1.36.3", exitBehind},
		"old patch of a tool":         {map[string]string{"example.com/behind/v2@v2.1.1": "2026-10-16"}, "v1.36.3", exitBehind},
		"old patch of Kubernetes":     {map[string]string{"k8s.io/kubernetes@v1.35.1": "2026-10-16"}, "v1.35.0", exitBehind},
		"known from staging only":     {map[string]string{"k8s.io/api@v0.35.1": "2026-10-16"}, "v1.35.0", exitBehind},
		"support has ended":           {nil, "v1.34.9", exitBehind},
		"new minor of Kubernetes":     {map[string]string{"k8s.io/kubernetes@v1.37.0": "2026-07-17"}, "v1.36.3", exitCurrent},
		"overdue minor of Kubernetes": {map[string]string{"k8s.io/kubernetes@v1.37.0": "2026-07-16"}, "v1.36.3", exitBehind},
	} {
		root := repository()
		root["stacks/local/scs/stack.yaml"] = &fstest.MapFile{Data: []byte("kubernetesVersion: " + c.stack + "\n")}
		if code, err := check(t.Context(), configOf(t, root, &fakeProxy{Has: c.has}), &bytes.Buffer{}); code != c.want || err != nil {
			t.Errorf("%s: exit %d, %v; want %d", name, code, err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	broken, closed := proxy(), &fakeProxy{Refuses: []string{"all"}}
	broken.Breaks = []string{"sigs.k8s.io/cluster-api@v1.14.3"}
	with := func(name, text string) fstest.MapFS {
		root := maps.Clone(repository())
		root[name] = &fstest.MapFile{Data: []byte(text)}
		return root
	}
	for name, c := range map[string]struct {
		root  fstest.MapFS
		proxy *fakeProxy
		want  string
	}{
		"network":        {repository(), broken, "connection reset; what is newer is not known"},
		"all is refused": {repository(), closed, "the proxy refuses all versions that were asked for"},
		"bad go.mod":     {with("go.mod", "require\n"), proxy(), "reading go.mod"},
		"bad stack": {with("stacks/local/scs/stack.yaml", "kubernetesVersion: v1.36\n"), proxy(),
			"stacks/local/scs: k8s.io/kubernetes: version \"v1.36\" is not exact"},
		"bad table of support":  {with(supportFile, "{}\n"), proxy(), "does not say on which day it was checked"},
		"stack without version": {with("stacks/local/scs/stack.yaml", "{}\n"), proxy(), "reading stacks/local/scs/stack.yaml"},
	} {
		var out bytes.Buffer
		_, err := check(t.Context(), configOf(t, c.root, c.proxy), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
			t.Errorf("%s: %v, and %q is written; want the error %q", name, err, out.String(), c.want)
		}
	}
}

// The first fault ends a run: others that wait for an answer are not waited for.
func TestFaultEndsRun(t *testing.T) {
	c := configOf(t, repository(), proxy())
	c.Lookup = func(ctx context.Context, path, _ string) (moduleRelease, error) {
		if path == "example.com/current" {
			return moduleRelease{}, errBroken
		}
		<-ctx.Done()
		return moduleRelease{}, ctx.Err()
	}
	if _, err := check(t.Context(), c, &bytes.Buffer{}); !errors.Is(err, errBroken) {
		t.Errorf("%v; want the fault that came first", err)
	}
}
