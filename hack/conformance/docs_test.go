package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page for users says how many tests there are; the numbers must be right.
func TestDocumentationCountsTheTests(t *testing.T) {
	j, err := readLists(filepath.Join("../..", listsDir))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../docs/user/local-clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf("%d of %d", len(j.included), len(j.included)+len(j.excluded))}
	counts := map[string]int{}
	for _, reason := range j.excluded {
		counts[reason]++
	}
	for reason, n := range counts {
		want = append(want, fmt.Sprintf("| %s | %d |", reason, n))
	}
	for _, w := range want {
		if !strings.Contains(string(b), w) {
			t.Errorf("docs/user/local-clusters.md does not have %q", w)
		}
	}
}
