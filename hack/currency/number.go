package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// versionNumber is a version whose successors can be named.
type versionNumber struct {
	Major, Minor, Patch int
	Pre                 string // with its dash, for example -rc.1
	Build               string // +incompatible, or empty
}

func parseVersionNumber(version string) (versionNumber, error) {
	if !semver.IsValid(version) {
		return versionNumber{}, fmt.Errorf("version %q is not of the form v1.2.3", version)
	}
	n := versionNumber{Pre: semver.Prerelease(version), Build: semver.Build(version)}
	core := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(version, n.Build), n.Pre), "v")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return versionNumber{}, fmt.Errorf("version %q is not exact; write it like v1.2.3", version)
	}
	for i, to := range []*int{&n.Major, &n.Minor, &n.Patch} {
		var err error
		if *to, err = strconv.Atoi(parts[i]); err != nil {
			return versionNumber{}, fmt.Errorf("version %q: %w", version, err)
		}
	}
	return n, nil
}

// String gives the spelling in go.mod.
func (n versionNumber) String() string {
	return fmt.Sprintf("v%d.%d.%d%s%s", n.Major, n.Minor, n.Patch, n.Pre, n.Build)
}

// minorString gives the spelling without the patch, for example 1.36.
func (n versionNumber) minorString() string { return fmt.Sprintf("%d.%d", n.Major, n.Minor) }

// nextRelease gives the smallest release that is newer: after a pre-release its own release.
func (n versionNumber) nextRelease() versionNumber {
	if n.Pre == "" {
		n.Patch++
	}
	n.Pre = ""
	return n
}

// nextMinor gives the first release of the minor after n.
func (n versionNumber) nextMinor() versionNumber {
	return versionNumber{Major: n.Major, Minor: n.Minor + 1, Build: n.Build}
}

// compareMinors orders numbers without looking at their patches.
func compareMinors(a, b versionNumber) int {
	if a.Major != b.Major {
		return a.Major - b.Major
	}
	return a.Minor - b.Minor
}
