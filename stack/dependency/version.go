package dependency

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/polder-kaas/polder/stack/fetch"
)

// constraint reads a version or a range of them; nothing is all.
func constraint(wanted string) (*semver.Constraints, error) {
	c, err := semver.NewConstraint(cmp.Or(wanted, "*"))
	if err != nil {
		return nil, fmt.Errorf("%.80q is no version and no range of them", wanted)
	}
	return c, nil
}

// fits says whether a version is one that is wanted.
func fits(wanted, version string) bool {
	c, err := constraint(wanted)
	v, vErr := semver.NewVersion(version)
	return err == nil && vErr == nil && c.Check(v)
}

// newest is the highest version that a range takes; pre-releases only if the range names one.
func newest(n Need, have []string) (string, error) {
	c, err := constraint(n.Version)
	if err != nil {
		return "", err
	}
	all := sorted(have)
	for _, v := range slices.Backward(all) {
		if c.Check(v) && v.Original() == n.Version { // what comes after a plus counts only here
			return v.Original(), nil
		}
	}
	for _, v := range slices.Backward(all) {
		if c.Check(v) {
			return v.Original(), nil
		}
	}
	wanted := "any version"
	if n.Version != "" {
		wanted = "version " + fetch.Clean(n.Version)
	}
	return "", fmt.Errorf("%s does not have %s of %s; %s", fetch.Clean(n.Repository), wanted, n.Name, latest(all))
}

// sorted are all that are versions, the newest last. Among spellings of the same one the full one is
// last: a tag 2 may be anything.
func sorted(have []string) []*semver.Version {
	var all []*semver.Version
	for _, text := range have {
		if v, err := semver.NewVersion(text); err == nil {
			all = append(all, v)
		}
	}
	full := func(v *semver.Version) int {
		if _, err := semver.StrictNewVersion(v.Original()); err != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *semver.Version) int {
		return cmp.Or(a.Compare(b), cmp.Compare(a.Metadata(), b.Metadata()), cmp.Compare(full(a), full(b)), cmp.Compare(a.Original(), b.Original()))
	})
	return all
}

// latest helps to choose another.
func latest(all []*semver.Version) string {
	if len(all) == 0 {
		return "it has none at all"
	}
	v := all[len(all)-1]
	if v.Prerelease() != "" {
		return fmt.Sprintf("its newest is the pre-release %s, which is taken only by a range that names one, such as >=%d.%d.%d-0", v.Original(), v.Major(), v.Minor(), v.Patch())
	}
	return "its newest is " + v.Original()
}
