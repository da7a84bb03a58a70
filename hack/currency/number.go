package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// number is a version whose successors can be named.
type number struct {
	Major, Minor, Patch int
	Pre                 string // with its dash, for example -rc.1
	Build               string // +incompatible, or empty
}

func parseNumber(version string) (number, error) {
	if !semver.IsValid(version) {
		return number{}, fmt.Errorf("version %q is not of the form v1.2.3", version)
	}
	n := number{Pre: semver.Prerelease(version), Build: semver.Build(version)}
	core := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(version, n.Build), n.Pre), "v")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return number{}, fmt.Errorf("version %q is not exact; write it like v1.2.3", version)
	}
	for i, to := range []*int{&n.Major, &n.Minor, &n.Patch} {
		var err error
		if *to, err = strconv.Atoi(parts[i]); err != nil {
			return number{}, fmt.Errorf("version %q: %w", version, err)
		}
	}
	return n, nil
}

// String is the spelling in go.mod.
func (n number) String() string {
	return fmt.Sprintf("v%d.%d.%d%s%s", n.Major, n.Minor, n.Patch, n.Pre, n.Build)
}

// minorString is the spelling without the patch, for example 1.36.
func (n number) minorString() string { return fmt.Sprintf("%d.%d", n.Major, n.Minor) }

// next is the smallest release that is newer: after a pre-release its own release.
func (n number) next() number {
	if n.Pre == "" {
		n.Patch++
	}
	n.Pre = ""
	return n
}

// nextMinor is the first release of the minor after n.
func (n number) nextMinor() number {
	return number{Major: n.Major, Minor: n.Minor + 1, Build: n.Build}
}

// compareMinors orders numbers without looking at their patches.
func compareMinors(a, b number) int {
	if a.Major != b.Major {
		return a.Major - b.Major
	}
	return a.Minor - b.Minor
}
