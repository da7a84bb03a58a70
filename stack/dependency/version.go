package dependency

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/polder-kaas/polder/stack/fetch"
)

// parseConstraint reads a version or a range of them; an empty one matches all.
func parseConstraint(wanted string) (*semver.Constraints, error) {
	c, err := semver.NewConstraint(cmp.Or(wanted, "*"))
	if err != nil {
		return nil, fmt.Errorf("%.80q is no version and no range of them", wanted)
	}
	return c, nil
}

// satisfies says whether a version is one that is wanted.
func satisfies(wanted, version string) bool {
	c, err := parseConstraint(wanted)
	v, vErr := semver.NewVersion(version)
	return err == nil && vErr == nil && c.Check(v)
}

// newestMatching gives the highest version that a range matches; pre-releases only if the range names one.
func newestMatching(n Requirement, available []string) (string, error) {
	c, err := parseConstraint(n.Version)
	if err != nil {
		return "", err
	}
	all := sortVersions(available)
	exact := func(v *semver.Version) bool { return isFullVersion(v) && v.Original() == n.Version && c.Check(v) }
	if i := slices.IndexFunc(all, exact); i >= 0 { // metadata after a plus counts only here
		return n.Version, nil
	}
	for _, v := range slices.Backward(all) {
		if c.Check(v) {
			return v.Original(), nil
		}
	}
	wanted := "any version"
	if n.Version != "" {
		wanted = "version " + fetch.Sanitize(n.Version)
	}
	return "", fmt.Errorf("%s does not have %s of %s; %s", fetch.Sanitize(n.Repository), wanted, n.Name,
		describeLatest(all))
}

// sortVersions gives all that are versions, the newest last. Of several spellings of one version the full one
// comes last, as a tag 2 may be anything, and among full ones that without a v.
func sortVersions(available []string) []*semver.Version {
	var all []*semver.Version
	for _, text := range available {
		if v, err := semver.NewVersion(text); err == nil {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *semver.Version) int {
		c := cmp.Or(a.Compare(b), cmp.Compare(a.Metadata(), b.Metadata()))
		switch {
		case c != 0:
			return c
		case isFullVersion(a) != isFullVersion(b) && isFullVersion(a):
			return 1
		case isFullVersion(a) != isFullVersion(b):
			return -1
		}
		return cmp.Compare(b.Original(), a.Original())
	})
	return all
}

// isFullVersion says whether a version has all its three numbers.
func isFullVersion(v *semver.Version) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(v.Original(), "v"))
	return err == nil
}

// describeLatest says what the newest version is, which helps to choose another.
func describeLatest(all []*semver.Version) string {
	if len(all) == 0 {
		return "it has none at all"
	}
	v := all[len(all)-1]
	if v.Prerelease() != "" {
		return fmt.Sprintf(
			"its newest is the pre-release %s, which is taken only by a range that names one, such as >=%d.%d.%d-0",
			v.Original(), v.Major(), v.Minor(), v.Patch(),
		)
	}
	return "its newest is " + v.Original()
}
