package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fromGinkgo = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="7000" disabled="6900" errors="0" failures="1" time="12.5">
  <testsuite name="Kubernetes e2e suite" tests="7000" failures="1" time="12.5">
    <testcase name="[It] [sig-a] passes" classname="Kubernetes e2e suite" status="passed" time="1.5"></testcase>
    <testcase name="[It] [sig-a] fails" classname="Kubernetes e2e suite" status="failed" time="2">
      <failure type="failed">[FAILED] Timed out&#xA;In [It] at: x.go:1</failure>
    </testcase>
    <testcase name="[It] [sig-a] is skipped" classname="Kubernetes e2e suite" status="skipped" time="0"><skipped message="skipped - no SSH"></skipped></testcase>
    <testcase name="[It] [sig-a] is another&#39;s" classname="Kubernetes e2e suite" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
  </testsuite>
</testsuites>`

func TestResultsAreThoseOfTheTestsThatRan(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.xml"), filepath.Join(dir, "out.xml")
	write(t, in, fromGinkgo)
	results, err := readJUnit(in, []string{"[sig-a] passes", "[sig-a] fails", "[sig-a] is skipped", "[sig-a] never ran"})
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		Passed bool
		Why    string
	}
	got := map[string]short{}
	for _, r := range results {
		got[r.name] = short{r.passed, r.reason}
	}
	want := map[string]short{
		"[sig-a] passes": {true, ""}, "[sig-a] fails": {false, "[FAILED] Timed out"},
		"[sig-a] is skipped": {false, "skipped: skipped - no SSH"}, "[sig-a] never ran": {false, "no result: the report does not have it"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := writeJUnit(out, results); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `<testsuites tests="4" failures="3">`) {
		t.Errorf("the merged report counts wrong:\n%s", b)
	}
	again, err := readJUnit(out, []string{"[sig-a] passes", "[sig-a] fails"})
	if err != nil || len(again) != 2 || again[0].passed || !again[1].passed || again[1].seconds != 1.5 {
		t.Errorf("the merged report reads as %+v, %v", again, err)
	}
}
