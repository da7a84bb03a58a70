package dependency

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/fetch"
)

// Requirement is a dependency as a chart's author writes it.
type Requirement struct {
	Name       string `json:"name"`
	Repository string `json:"repository"` // https://…, oci://… or file://…; empty if the chart lies in charts
	Version    string `json:"version"`    // or a range of them
	Line       int    `json:"-"`          // in Chart.yaml
}

// Schemes of repositories.
const (
	pathScheme = "file://"
	ociScheme  = "oci://"
)

func (n Requirement) isLocalPath() bool { return strings.HasPrefix(n.Repository, pathScheme) }

// chartNamePattern is Helm's, but names begin with a letter or digit: Helm ignores charts that begin otherwise.
var chartNamePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,249}$`)

// ListRequirements lists what the chart in a directory of a source needs.
func ListRequirements(files archive.Tree, dir string) ([]Requirement, error) {
	file := path.Join(dir, chartFile)
	b, ok := files[file]
	if !ok {
		return nil, nil
	}
	d, err := document.ParseOne(file, b)
	if err != nil {
		return nil, err
	}
	var c struct {
		Dependencies []Requirement `json:"dependencies"`
	}
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	for i := range c.Dependencies {
		c.Dependencies[i].Line = d.Line("dependencies", strconv.Itoa(i))
	}
	return c.Dependencies, nil
}

// wrapError says which dependency of which chart an error is about.
func (n Requirement) wrapError(dir string, err error) error {
	name := n.Name
	if !chartNamePattern.MatchString(name) {
		name = fmt.Sprintf("%.60q", name)
	}
	return &document.Error{
		File: path.Join(dir, chartFile), Line: n.Line, Reason: fmt.Sprintf("dependency %s: %v", name, err),
	}
}

// check says what is wrong with a requirement before any repository is asked.
func (n Requirement) check(dir string) error {
	switch {
	case !chartNamePattern.MatchString(n.Name):
		return errors.New("this is no name of a chart; use letters, digits, dots, dashes and underscores")
	case n.Repository == "":
		return fmt.Errorf("it has no repository, and is not in %s/charts; add the chart there, or name its repository", dir)
	case strings.HasPrefix(n.Repository, "@"), strings.HasPrefix(n.Repository, "alias:"):
		return fmt.Errorf("%s is a name that only helm on one computer knows; write the address of the repository, https://… or oci://…", fetch.Sanitize(n.Repository))
	case n.isLocalPath(), strings.HasPrefix(n.Repository, ociScheme):
		return nil
	}
	_, err := helmRepository(n.Repository)
	return err
}

// helmRepository takes addresses without anything that may be secret: they are written into
// stack.lock, and shown.
func helmRepository(repository string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(repository, "/") + "/")
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("the repository %q is neither https://…, oci://… nor file://…", fetch.Sanitize(repository))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf(
			"the repository at %s has a user, a password or a query in its address, which everybody who gets the stack would see; write https://host/path", u.Host,
		)
	}
	return u, nil
}

// IsVendored says whether a dependency lies in the directory charts of the chart already, as a
// directory or as an archive, in a version that it may have.
func IsVendored(files archive.Tree, dir string, n Requirement) bool {
	for _, v := range vendoredVersions(files, dir, n.Name) {
		if n.acceptsVendored(v) {
			return true
		}
	}
	return false
}

// acceptsVendored accepts more than satisfies: a chart that its author put there is meant, also if it is a
// pre-release, or if nobody can say which version it is.
func (n Requirement) acceptsVendored(text string) bool {
	c, err := semver.NewConstraint(n.Version)
	v, vErr := semver.NewVersion(text)
	if err != nil || vErr != nil {
		return true
	}
	c.IncludePrerelease = true
	return c.Check(v)
}

// vendoredVersions gives the versions of a chart in the directory charts of another, by their path there.
func vendoredVersions(files archive.Tree, dir, name string) map[string]string {
	out := map[string]string{}
	charts := files.Sub(path.Join(dir, "charts"))
	for file, b := range charts {
		first, rest, inDir := strings.Cut(file, "/")
		switch {
		case inDir && rest == chartFile:
			// A Chart.yaml that cannot be read counts by the name of its directory: its author put it there.
			if c, err := readChart(b); c.Name == name || err != nil && first == name {
				out[first] = c.Version
			}
		case !inDir && path.Ext(file) == ".tgz": // name-version.tgz, and name may be the beginning of another
			text, ok := strings.CutPrefix(strings.TrimSuffix(file, ".tgz"), name+"-")
			if _, err := semver.NewVersion(text); ok && err == nil {
				out[file] = text
			}
		}
	}
	return out
}

// checkStaleVendored refuses an old version in the directory charts that no requirement of the chart accepts:
// Helm would load it beside the right one.
func (n Requirement) checkStaleVendored(files archive.Tree, dir string, all []Requirement) error {
	vendored := vendoredVersions(files, dir, n.Name)
	for _, file := range slices.Sorted(maps.Keys(vendored)) {
		v := vendored[file]
		if !slices.ContainsFunc(all, func(o Requirement) bool { return o.Name == n.Name && o.acceptsVendored(v) }) {
			return fmt.Errorf("%s is version %s, and the chart wants %s; remove it, and run polder stack lock",
				path.Join(dir, "charts", file), v, fetch.Sanitize(n.Version))
		}
	}
	return nil
}
