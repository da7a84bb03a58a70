package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestReplacedModules: what the main module replaces must be replaced here too, by the same versions.
func TestReplacedModules(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\t(k8s\.io/\S+ => \S+ \S+)$`)
	var of [2][]string
	for i, name := range []string{"../go.mod", "go.mod"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		of[i] = line.FindAllString(string(b), -1)
	}
	if len(of[0]) < 20 || !slices.Equal(of[0], of[1]) {
		t.Errorf("go.mod has %q, and here it is %q: take over what differs and run go mod tidy", of[0], of[1])
	}
}
