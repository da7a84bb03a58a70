package version

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ReleaseLine is what all releases of a stack for one minor of Kubernetes have in common.
type ReleaseLine struct {
	Provider   string
	Name       string
	Kubernetes Kubernetes // its patch does not count
}

// ReleaseName names one release: one version of a line.
type ReleaseName struct {
	ReleaseLine
	Version Version
}

// MaxName is how long the name of a release may be: it is part of names of objects.
const MaxName = 63

var (
	namePartPattern    = regexp.MustCompile(`^[a-z0-9]+$`)
	releaseNamePattern = regexp.MustCompile(
		`^([a-z0-9]+)-([a-z0-9]+(?:-[a-z0-9]+)*)-(0|[1-9][0-9]{0,3})-(0|[1-9][0-9]{0,3})-(v[0-9]+(?:-[0-9A-Za-z_]+[.-][0-9A-Za-z_]+)?)$`,
	)
)

// ParseReleaseName reads the name of a release in either spelling: docker-ferrol-1-27-v1,
// docker-ferrol-1-27-v0-sha-abc1234, docker-ferrol-1-27-v0-sha.abc1234. A stack's name may have
// dashes, its provider's may not; the tools that came before read neither.
func ParseReleaseName(s string) (ReleaseName, error) {
	m := releaseNamePattern.FindStringSubmatch(truncate(s))
	if m == nil {
		return ReleaseName{}, fmt.Errorf("release %q is not of the form provider-name-1-36-v1", truncate(s))
	}
	v, err := Parse(m[5])
	if err != nil {
		return ReleaseName{}, fmt.Errorf("release %q: %w", s, err)
	}
	major, _ := strconv.Atoi(m[3]) // at most four digits
	minor, _ := strconv.Atoi(m[4])
	return ReleaseName{ReleaseLine: ReleaseLine{Provider: m[1], Name: m[2],
		Kubernetes: Kubernetes{Major: major, Minor: minor, Patch: -1}}, Version: v}, nil
}

// Check refuses a line whose provider or name cannot be part of the name of a release.
func (l ReleaseLine) Check() error {
	if !namePartPattern.MatchString(l.Provider) {
		return fmt.Errorf("provider %q must be of lower-case letters and digits", truncate(l.Provider))
	}
	for _, p := range strings.Split(l.Name, "-") {
		if !namePartPattern.MatchString(p) {
			return fmt.Errorf("stack name %q must be of lower-case letters, digits and single dashes", truncate(l.Name))
		}
	}
	return nil
}

// String is the beginning that the names of all releases of the line share. It is also the Helm
// release name of the class chart.
func (l ReleaseLine) String() string {
	return fmt.Sprintf("%s-%s-%d-%d", l.Provider, l.Name, l.Kubernetes.Major, l.Kubernetes.Minor)
}

// SameLine says whether both are one line, whatever the patch of Kubernetes.
func (l ReleaseLine) SameLine(o ReleaseLine) bool {
	return l.Provider == o.Provider && l.Name == o.Name && l.Kubernetes.SameMinor(o.Kubernetes)
}

// ClassChart is the name of the chart the cluster class comes from.
func (l ReleaseLine) ClassChart() string { return l.String() + "-cluster-class" }

// AddonChart is the name of the add-on chart, or of the bundle of them.
func (l ReleaseLine) AddonChart() string { return l.String() + "-cluster-addon" }

// Tag is the name of the release in registries, directories and of its object.
func (r ReleaseName) Tag() string { return r.ReleaseLine.String() + "-" + r.Version.Dashed() }

// Class is the name of the release's cluster class.
func (r ReleaseName) Class() string { return r.ReleaseLine.String() + "-" + r.Version.String() }

// String is the tag.
func (r ReleaseName) String() string { return r.Tag() }

// CompareReleaseNames orders by line, then by version.
func CompareReleaseNames(a, b ReleaseName) int {
	return cmp.Or(
		strings.Compare(a.Provider, b.Provider), strings.Compare(a.Name, b.Name),
		cmp.Compare(a.Kubernetes.Major, b.Kubernetes.Major), cmp.Compare(a.Kubernetes.Minor, b.Kubernetes.Minor),
		Compare(a.Version, b.Version),
	)
}
