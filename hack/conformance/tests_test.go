package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlanKeepsSerialTestsApart(t *testing.T) {
	got := map[string]string{}
	for _, b := range planBatches([]string{"a", "b [Serial]", "c", "d", "e [Serial] [Slow]"}, 2) {
		got[b.name+" on "+b.cluster] = strings.Join(b.tests, ", ")
	}
	want := map[string]string{"serial on serial": "b [Serial], e [Serial] [Slow]", "parallel-1 on parallel": "a, d", "parallel-2 on parallel": "c"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if n := len(planBatches([]string{"a"}, 4)); n != 1 {
		t.Errorf("one test has %d processes", n)
	}
}

func TestClusterVersion(t *testing.T) {
	for asked, want := range map[string]string{"": "v1.37.1", "1.37": "v1.37.1", "v1.37": "v1.37.1", "1.36": "v1.36.0", "v1.35.8": "v1.35.8", "latest": "",
		"1": "", "1.36.x": ""} {
		got, err := clusterVersion(asked, "v1.37.1")
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", asked, got, err, want)
		}
	}
}

func TestClustersHaveTheNameAndVersionAskedFor(t *testing.T) {
	b, err := sampleManifests("local/cluster.yaml", func(o map[string]any) error { return setNameAndVersion(o, "other", "v1.36.0") })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: other\n", "version: v1.36.0\n", "kind: Cluster\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}

func TestReportNamesWhatFailed(t *testing.T) {
	var out strings.Builder
	err := printReport(&out, []result{{name: "[sig-a] one", passed: true}, {name: "[sig-a] two", reason: "timed out"}, {name: "[sig-b] three", passed: true}},
		90*time.Second)
	if err == nil || err.Error() != "1 of 3 tests failed, in 1m30s" {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"sig-a   1        1\n", "sig-b   1        0\n", "all     2        1\n", "failed: [sig-a] two\n  why: timed out\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := printReport(&out, []result{{name: "[sig-a] one", passed: true}}, 0); err != nil {
		t.Error(err)
	}
}
