package dependency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
)

// maxChart is how large a packed chart may be: it becomes one file of a release.
var maxChart = archive.Default.File

// Lock resolves all dependencies of a source that are not vendored, and fetches each once. Those
// that the old lock has, and their charts still want, stay as they are, unless upgrade is set.
func (f *Fetcher) Lock(ctx context.Context, s *stack.Source, old Lock, upgrade bool) (Lock, error) {
	out := Lock{Charts: map[string][]Locked{}}
	var errs []error
	for _, dir := range s.Charts() {
		needs, err := Needs(s.Files, dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, n := range needs {
			if Vendored(s.Files, dir, n) {
				continue
			}
			locked, known := old.Find(dir, n)
			if !known || upgrade || strings.HasPrefix(n.Repository, pathScheme) {
				locked, err = f.resolve(ctx, s.Files, dir, n)
			} else {
				_, err = f.fetch(ctx, s.Files, dir, locked)
			}
			if err != nil {
				errs = append(errs, &document.Error{File: path.Join(dir, "Chart.yaml"), Line: n.Line, Reason: fmt.Sprintf("dependency %s: %v", n.Name, err)})
				continue
			}
			out.Charts[dir] = append(out.Charts[dir], locked)
		}
	}
	return out, errors.Join(errs...)
}

// Vendor fetches what a source has locked. Everything that a chart needs must be locked, or in the
// source.
func (f *Fetcher) Vendor(ctx context.Context, s *stack.Source) (stack.Vendored, error) {
	lock, err := ParseLock(s.Files)
	if err != nil {
		return nil, err
	}
	out := stack.Vendored{}
	var errs []error
	for _, dir := range s.Charts() {
		needs, err := Needs(s.Files, dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, n := range needs {
			if Vendored(s.Files, dir, n) {
				continue
			}
			name, b, err := f.vendor(ctx, s.Files, dir, n, lock)
			if err != nil {
				errs = append(errs, &document.Error{File: path.Join(dir, "Chart.yaml"), Line: n.Line, Reason: fmt.Sprintf("dependency %s: %v", n.Name, err)})
				continue
			}
			if out[dir] == nil {
				out[dir] = archive.Tree{}
			}
			out[dir][path.Join("charts", name)] = b
		}
	}
	return out, errors.Join(errs...)
}

func (f *Fetcher) vendor(ctx context.Context, files archive.Tree, dir string, n Need, lock Lock) (string, []byte, error) {
	l, ok := lock.Find(dir, n)
	if !ok {
		return "", nil, fmt.Errorf("%s %s of %s is neither in %s/charts nor locked; run polder stack lock", n.Name, n.Version, n.Repository, dir)
	}
	b, err := f.fetch(ctx, files, dir, l)
	return l.Name + "-" + l.Version + ".tgz", b, err
}

// resolve finds the newest version that is wanted, and its digest.
func (f *Fetcher) resolve(ctx context.Context, files archive.Tree, dir string, n Need) (Locked, error) {
	l := Locked{Name: n.Name, Repository: n.Repository, Wanted: n.Version}
	have, err := f.versions(ctx, files, dir, &l)
	if err != nil {
		return l, err
	}
	if l.Version, err = newest(n, have); err != nil {
		return l, err
	}
	b, err := f.download(ctx, files, dir, &l)
	if err != nil {
		return l, err
	}
	if err := isChart(b, l); err != nil {
		return l, err
	}
	l.Digest = digest(b)
	return l, f.Cache.put(l.Digest, b)
}

// fetch gets what was locked, from the cache or from where it is.
func (f *Fetcher) fetch(ctx context.Context, files archive.Tree, dir string, l Locked) ([]byte, error) {
	if b, ok := f.Cache.get(l.Digest); ok && !strings.HasPrefix(l.Repository, pathScheme) {
		return b, nil
	}
	b, err := f.download(ctx, files, dir, &l)
	if err != nil {
		return nil, err
	}
	if got := digest(b); got != l.Digest {
		return nil, fmt.Errorf("%s %s of %s has the digest %s, and %s was locked; if the change is right, run polder stack lock --upgrade", l.Name, l.Version, l.Repository, got, l.Digest)
	}
	return b, f.Cache.put(l.Digest, b)
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// newest is the highest version that a range takes; pre-releases only if the range names one.
func newest(n Need, have []string) (string, error) {
	want := n.Version
	if want == "" {
		want = "*"
	}
	c, err := semver.NewConstraint(want)
	if err != nil {
		return "", fmt.Errorf("%q is no version and no range of them", n.Version)
	}
	var best *semver.Version
	for _, text := range have {
		v, err := semver.NewVersion(text)
		if err == nil && c.Check(v) && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return "", fmt.Errorf("%s has no version %s of %s; %s", n.Repository, n.Version, n.Name, latest(have))
	}
	return best.Original(), nil
}

// latest helps to choose another.
func latest(have []string) string {
	var all []*semver.Version
	for _, text := range have {
		if v, err := semver.NewVersion(text); err == nil {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return "it has none at all"
	}
	return "its newest is " + slices.MaxFunc(all, (*semver.Version).Compare).Original()
}

// isChart makes sure that what a repository gave is what was asked for.
func isChart(b []byte, l Locked) error {
	t, err := archive.Read(bytes.NewReader(b), archive.Default)
	if err != nil {
		return fmt.Errorf("%s %s: %w", l.Name, l.Version, err)
	}
	d, err := document.One("Chart.yaml", t[path.Join(l.Name, "Chart.yaml")])
	if err != nil {
		return fmt.Errorf("%s %s has no sound Chart.yaml: %w", l.Name, l.Version, err)
	}
	var c struct{ Name, Version string }
	if err := d.Decode(&c); err != nil {
		return err
	}
	if c.Name != l.Name || strings.TrimPrefix(c.Version, "v") != strings.TrimPrefix(l.Version, "v") {
		return fmt.Errorf("%s gave the chart %s %s instead of %s %s", l.Repository, c.Name, c.Version, l.Name, l.Version)
	}
	return nil
}
