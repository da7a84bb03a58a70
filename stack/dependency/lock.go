// Package dependency finds the charts that charts of a stack need: it resolves them to exact versions
// and digests, which stack.lock keeps, and fetches them for a build, so that a release needs no
// network.
package dependency

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
)

// Lock is what stack.lock says.
type Lock struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Charts     map[string][]Locked `json:"charts"` // by the directory of the chart that needs them
}

// Kind and version of the lock file.
const (
	lockVersion = "polder.dev/v1alpha1"
	lockKind    = "StackLock"
)

// Need is a dependency as a chart's author writes it.
type Need struct {
	Name       string `json:"name"`
	Repository string `json:"repository"` // https://…, oci://… or file://…; empty if the chart lies in charts
	Version    string `json:"version"`    // or a range of them
	Line       int    `json:"-"`          // in Chart.yaml
}

// Locked is a dependency as it was resolved.
type Locked struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Wanted     string `json:"wanted"` // the version, or range, that it was resolved for
	Version    string `json:"version"`
	Digest     string `json:"digest"`        // of the packed chart
	URL        string `json:"url,omitempty"` // where a repository has it
}

// ParseLock reads stack.lock; there need not be one.
func ParseLock(files archive.Tree) (Lock, error) {
	var l Lock
	b, ok := files[stack.LockFile]
	if !ok {
		return l, nil
	}
	d, err := document.One(stack.LockFile, b)
	if err != nil {
		return l, err
	}
	if err := d.Decode(&l); err != nil {
		return l, err
	}
	if l.APIVersion != lockVersion || l.Kind != lockKind {
		return l, &document.Error{File: stack.LockFile, Line: d.Line("apiVersion"), Reason: fmt.Sprintf("this is a %s of %q and not a %s of %s; run polder stack lock", l.Kind, l.APIVersion, lockKind, lockVersion)}
	}
	return l, nil
}

// Marshal writes stack.lock.
func (l Lock) Marshal() ([]byte, error) {
	l.APIVersion, l.Kind = lockVersion, lockKind
	b, err := yaml.Marshal(l)
	return append([]byte("# Written by polder stack lock. Commit it; do not edit it.\n"), b...), err
}

// Find is what a need was resolved to, if it was and still is what the author wants.
func (l Lock) Find(dir string, n Need) (Locked, bool) {
	i := slices.IndexFunc(l.Charts[dir], func(c Locked) bool {
		return c.Name == n.Name && c.Repository == n.Repository && c.Wanted == n.Version
	})
	if i < 0 {
		return Locked{}, false
	}
	return l.Charts[dir][i], true
}

// Needs lists what the chart in a directory of a source needs.
func Needs(files archive.Tree, dir string) ([]Need, error) {
	file := path.Join(dir, "Chart.yaml")
	b, ok := files[file]
	if !ok {
		return nil, nil
	}
	d, err := document.One(file, b)
	if err != nil {
		return nil, err
	}
	var c struct {
		Dependencies []Need `json:"dependencies"`
	}
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	for i := range c.Dependencies {
		c.Dependencies[i].Line = d.Line("dependencies", strconv.Itoa(i))
	}
	return c.Dependencies, nil
}

// Vendored says whether a dependency lies in the directory charts of the chart already, as a
// directory or as an archive.
func Vendored(files archive.Tree, dir string, n Need) bool {
	for name := range files.Sub(path.Join(dir, "charts")) {
		first, _, isDir := strings.Cut(name, "/")
		if isDir && first == n.Name || !isDir && path.Ext(name) == ".tgz" && strings.HasPrefix(name, n.Name+"-") {
			return true
		}
	}
	return false
}
