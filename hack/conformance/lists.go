package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testLists are the tests that our lists name.
type testLists struct {
	included []string
	excluded map[string]string // why, by name
}

// readLists reads included.txt, a name on each line, and excluded.txt, where a line that ends with a colon says
// what the tests below it need. Lines that begin with # are for readers.
func readLists(dir string) (testLists, error) {
	j := testLists{excluded: map[string]string{}}
	in, err := readLines(filepath.Join(dir, "included.txt"))
	if err != nil {
		return j, err
	}
	j.included = in
	out, err := readLines(filepath.Join(dir, "excluded.txt"))
	if err != nil {
		return j, err
	}
	reason := ""
	for _, line := range out {
		if r, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, "[") {
			reason = r
			continue
		}
		if reason == "" {
			return j, fmt.Errorf("excluded.txt: %q has no reason above it", line)
		}
		if _, twice := j.excluded[line]; twice {
			return j, fmt.Errorf("excluded.txt: %q is there twice", line)
		}
		j.excluded[line] = reason
	}
	return j, nil
}

func readLines(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out, nil
}

// findMismatches says where the lists differ from the tests of a version, one sentence for each test.
func (j testLists) findMismatches(names []string) []string {
	var mismatches []string
	for _, n := range names {
		_, out := j.excluded[n]
		switch in := slices.Contains(j.included, n); {
		case in && out:
			mismatches = append(mismatches, fmt.Sprintf("%q is in both lists; take it out of one", n))
		case !in && !out:
			mismatches = append(mismatches,
				fmt.Sprintf("%q is in neither list; add it to included.txt, or to excluded.txt below what it needs", n))
		}
	}
	all := slices.Clone(j.included)
	for n := range j.excluded {
		all = append(all, n)
	}
	slices.Sort(all)
	for i, n := range all {
		if !slices.Contains(names, n) {
			mismatches = append(mismatches, fmt.Sprintf("%q is no conformance test of this version; take it out", n))
		}
		if i > 0 && n == all[i-1] && slices.Contains(j.included, n) {
			if _, out := j.excluded[n]; !out {
				mismatches = append(mismatches, fmt.Sprintf("%q is in included.txt twice", n))
			}
		}
	}
	return mismatches
}

// labelPattern matches labels in the names of tests. Versions of Kubernetes put them at different places.
var labelPattern = regexp.MustCompile(` ?\[(Conformance|NodeConformance|Serial|Slow|Disruptive)\]`)

// nameWithoutLabels gives a test's name without labels, which is the same in all versions.
func nameWithoutLabels(name string) string { return labelPattern.ReplaceAllString(name, "") }

// chooseTests picks the tests to run. Lists that do not fit the version they are for are an error; of other
// versions, the tests that our lists do not name are printed and left out.
func chooseTests(out io.Writer, o options, s suite) ([]string, error) {
	j, err := readLists(listsDir)
	if err != nil {
		return nil, err
	}
	if mismatches := j.findMismatches(s.names); o.defaultE2E && len(mismatches) > 0 {
		return nil, fmt.Errorf("the lists in %s do not fit Kubernetes %s:\n  %s", listsDir, s.version,
			strings.Join(mismatches, "\n  "))
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	tests, unlisted := j.partitionTests(s.names)
	for _, n := range unlisted {
		fmt.Fprintf(out, "not in our lists, and not run: %s\n", n)
	}
	tests = slices.DeleteFunc(tests, func(n string) bool { return !only.MatchString(n) })
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test of Kubernetes %s is to be run", s.version)
	}
	return tests, nil
}

// partitionTests finds among the tests of some version those that are included, and those that are not listed.
func (j testLists) partitionTests(names []string) (included, unlisted []string) {
	in, out := map[string]bool{}, map[string]bool{}
	for _, n := range j.included {
		in[nameWithoutLabels(n)] = true
	}
	for n := range j.excluded {
		out[nameWithoutLabels(n)] = true
	}
	for _, n := range names {
		switch k := nameWithoutLabels(n); {
		case in[k]:
			included = append(included, n)
		case !out[k]:
			unlisted = append(unlisted, n)
		}
	}
	return included, unlisted
}
