// Package dependency finds the charts that charts of a stack need: it resolves them to exact versions
// and digests, which stack.lock keeps, and fetches them for a build, so that a release needs no
// network.
package dependency

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
)

// Lock is what stack.lock says.
type Lock struct {
	APIVersion string                   `json:"apiVersion"`
	Kind       string                   `json:"kind"`
	Charts     map[string][]LockedChart `json:"charts"` // by the directory of the chart that needs them
}

// Kind and version of the lock file, and how large it may be: for a thousand dependencies.
const (
	lockVersion = "polder.dev/v1alpha1"
	lockKind    = "StackLock"
	maxLock     = 256 << 10
)

// LockedChart is a dependency as it was resolved.
type LockedChart struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Wanted     string `json:"wanted"` // the version, or range, that it was resolved for
	Version    string `json:"version"`
	Digest     string `json:"digest"`        // of the packed chart
	URL        string `json:"url,omitempty"` // where a repository has it
}

// ParseLock reads stack.lock; there need not be one. Names, versions and digests in what it returns are
// valid, as they become names of files.
func ParseLock(files archive.Tree) (Lock, error) {
	b, ok := files[stack.LockFile]
	if !ok {
		return Lock{}, nil
	}
	l, err := parseLock(b)
	if err == nil {
		return l, nil
	}
	var e *document.Error
	if errors.As(err, &e) { // nobody mends by hand what a command writes
		err = &document.Error{File: e.File, Line: e.Line, Reason: e.Reason + "; remove it, and run polder stack lock"}
	}
	return Lock{}, err
}

func parseLock(b []byte) (l Lock, err error) {
	if len(b) > maxLock {
		return l, &document.Error{
			File: stack.LockFile, Reason: fmt.Sprintf("it has %d bytes, and at most %d are taken", len(b), maxLock),
		}
	}
	d, err := document.ParseOne(stack.LockFile, b)
	if err != nil {
		return l, err
	}
	if err := d.Decode(&l); err != nil {
		return l, err
	}
	if l.APIVersion != lockVersion || l.Kind != lockKind {
		return l, &document.Error{
			File: stack.LockFile, Line: d.Line("apiVersion"),
			Reason: fmt.Sprintf("this is %.60q of %.60q, and not %s of %s; if no newer version of polder wrote it, it is broken",
				l.Kind, l.APIVersion, lockKind, lockVersion),
		}
	}
	return l, l.check(d)
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// check finds an entry that polder stack lock cannot have written.
func (l Lock) check(d document.Document) error {
	for _, dir := range slices.Sorted(maps.Keys(l.Charts)) {
		for i, c := range l.Charts[dir] {
			key, value := "", ""
			if _, err := semver.NewVersion(c.Version); err != nil {
				key, value = "version", c.Version
			}
			if !chartNamePattern.MatchString(c.Name) {
				key, value = "name", c.Name
			}
			if !digestPattern.MatchString(c.Digest) {
				key, value = "digest", c.Digest
			}
			if key != "" {
				return &document.Error{
					File: stack.LockFile, Line: d.Line("charts", dir, strconv.Itoa(i), key),
					Reason: fmt.Sprintf("%.80q is no %s of a chart", value, key),
				}
			}
		}
	}
	return nil
}

// Marshal writes stack.lock.
func (l Lock) Marshal() ([]byte, error) {
	l.APIVersion, l.Kind = lockVersion, lockKind
	b, err := yaml.Marshal(l)
	return append([]byte("# Written by polder stack lock. Commit it; do not edit it.\n"), b...), err
}

// Find gives what a requirement was resolved to, if it was and still is what the author wants.
func (l Lock) Find(dir string, n Requirement) (LockedChart, bool) {
	i := slices.IndexFunc(l.Charts[dir], func(c LockedChart) bool {
		return c.Name == n.Name && c.Repository == n.Repository && c.Wanted == n.Version && satisfies(n.Version, c.Version)
	})
	if i < 0 {
		return LockedChart{}, false
	}
	return l.Charts[dir][i], true
}

// checkNotRepublished refuses a version that is locked with another content for some chart of the stack.
func (l Lock) checkNotRepublished(now LockedChart) error {
	for _, charts := range l.Charts {
		for _, c := range charts {
			if c.Name == now.Name && c.Repository == now.Repository && c.Version == now.Version && c.Digest != now.Digest {
				return changedError(c, now.Digest)
			}
		}
	}
	return nil
}

// changedError is for a version whose content has changed: a published version never does, unless somebody
// tampers with it.
func changedError(locked LockedChart, now string) error {
	return fmt.Errorf("%s %s of %s has another content than it was locked with, %s instead of %s; ask who publishes it, and if the change is right, remove its entry from %s and run polder stack lock",
		locked.Name, locked.Version, locked.Repository, now, locked.Digest, stack.LockFile)
}
