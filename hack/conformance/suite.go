package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// suite is what a program with tests says of itself.
type suite struct {
	version string
	names   []string // of its conformance tests
}

func readSuite(ctx context.Context, program string) (suite, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return suite{}, err
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return suite{}, fmt.Errorf("%s is not built; run: make conformance", program)
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return suite{}, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	list, err := exec.CommandContext(ctx, program, "--list-conformance-tests").Output()
	if err != nil {
		return suite{}, fmt.Errorf("asking %s for its tests: %w", program, err)
	}
	names, err := parseNames(list)
	return suite{version: strings.TrimSpace(string(version)), names: names}, err
}

// parseNames reads a list of conformance tests as Kubernetes keeps it.
func parseNames(list []byte) ([]string, error) {
	var tests []struct{ Codename string }
	if err := yaml.Unmarshal(list, &tests); err != nil {
		return nil, fmt.Errorf("reading the list of conformance tests: %w", err)
	}
	var names []string
	for _, t := range tests {
		names = append(names, t.Codename)
	}
	if len(names) == 0 {
		return nil, errors.New("the list of conformance tests is empty")
	}
	return names, nil
}

var minorPattern = regexp.MustCompile(`^v?([0-9]+\.[0-9]+)$`)

// clusterVersion gives the version of the clusters: what was asked for, and if that is only a minor, the patch
// version of the tests, or its first.
func clusterVersion(asked, tests string) (string, error) {
	if asked == "" {
		return tests, nil
	}
	m := minorPattern.FindStringSubmatch(asked)
	switch {
	case m != nil && strings.HasPrefix(tests, "v"+m[1]+"."):
		return tests, nil
	case m != nil:
		return "v" + m[1] + ".0", nil
	case regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(asked):
		return asked, nil
	}
	return "", fmt.Errorf("--kubernetes: %q is no version such as 1.36 or v1.36.4", asked)
}
