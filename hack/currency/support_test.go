package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestSupportFile(t *testing.T) {
	s, err := readSupportTable(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Projects {
		if p.Name == "" || len(p.Modules) == 0 || !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%q lacks a name, a module or a source", p.Name)
		}
		for _, m := range p.Minors {
			if m.Released.IsZero() || m.End.IsZero() == (m.Until == "") {
				t.Errorf("%s %s lacks a day, or has both an end and an event", p.Name, m.Minor)
			}
			if !m.End.IsZero() && !m.End.After(m.Released.Time) || m.Maintenance.After(m.End.Time) {
				t.Errorf("%s %s has its days in the wrong order", p.Name, m.Minor)
			}
			if _, err := parseVersionNumber("v" + m.Minor + ".0"); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	for path, version := range map[string]string{
		"k8s.io/kubernetes": "v1.36.3", "k8s.io/api": "v0.37.1", "go.etcd.io/etcd/server/v3": "v3.6.14", "sigs.k8s.io/cluster-api/api": "v1.14.2",
	} {
		n, err := parseVersionNumber(version)
		if m := s.findMinor(path, n); m == nil || err != nil {
			t.Errorf("%s %s is not in the table: %v", path, version, err)
		}
	}
}

func TestReadSupportTable(t *testing.T) {
	for name, text := range map[string]string{
		"no day":        "projects: []\n",
		"wrong day":     "checked: 17.11.2026\n",
		"unknown field": "checked: 2026-11-17\nprojets: []\n",
	} {
		if _, err := readSupportTable(fstest.MapFS{supportFile: {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := readSupportTable(fstest.MapFS{}); err == nil {
		t.Error("no file: no error")
	}
}

func TestFindSupport(t *testing.T) {
	s := supportTable{Projects: []project{
		{Name: "Kubernetes", Modules: []string{"k8s.io/kubernetes"}, Staging: "k8s.io", Minors: []minor{{Minor: "1.36"}}},
		{Name: "etcd", Modules: []string{"go.etcd.io/etcd"}, Minors: []minor{{Minor: "3.6"}}},
	}}
	for _, c := range []struct{ path, version, want string }{
		{"k8s.io/kubernetes", "v1.36.3", "1.36"},
		{"k8s.io/kubernetes", "v1.38.0", ""},
		{"k8s.io/api", "v0.36.3", "1.36"},
		{"k8s.io/klog/v2", "v2.36.0", ""},
		{"k8s.io/other", "v1.36.0", ""},
		{"go.etcd.io/etcd/server/v3", "v3.6.14", "3.6"},
		{"go.etcd.io/etcdother", "v3.6.14", ""},
		{"sigs.k8s.io/yaml", "v0.36.0", ""},
	} {
		n, err := parseVersionNumber(c.version)
		if m := s.findMinor(c.path, n); err != nil || (m == nil) != (c.want == "") || m != nil && m.Minor != c.want {
			t.Errorf("%s %s: found %v, %v; want %q", c.path, c.version, m, err, c.want)
		}
	}
}

func TestIsPast(t *testing.T) {
	d := date{day(t, "2026-10-27")}
	if d.isPast(day(t, "2026-10-27").Add(23*time.Hour)) || !d.isPast(day(t, "2026-10-28")) || (date{}).isPast(day(t, "2026-10-28")) {
		t.Error("a day passes when it is over, and no day never")
	}
}
