package dependency

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	exact := func(v *semver.Version) bool { return full(v) && v.Original() == n.Version && c.Check(v) }
	if i := slices.IndexFunc(all, exact); i >= 0 { // what comes after a plus counts only here
		return n.Version, nil
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

// sorted are all that are versions, the newest last. Of spellings of the same one the full one is last,
// as a tag 2 may be anything, and that without a v.
func sorted(have []string) []*semver.Version {
	var all []*semver.Version
	for _, text := range have {
		if v, err := semver.NewVersion(text); err == nil {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *semver.Version) int {
		c := cmp.Or(a.Compare(b), cmp.Compare(a.Metadata(), b.Metadata()))
		switch {
		case c != 0:
			return c
		case full(a) != full(b) && full(a):
			return 1
		case full(a) != full(b):
			return -1
		}
		return cmp.Compare(b.Original(), a.Original())
	})
	return all
}

// full says that a version has all its three numbers.
func full(v *semver.Version) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(v.Original(), "v"))
	return err == nil
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
