package dependency

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/fetch"
)

// Lock resolves all dependencies of a source that are not vendored, and fetches each once. Those
// that the old lock has, and their charts still want, stay as they are, unless upgrade is set. A
// version that the old lock has with another digest is refused either way. The error has a line for
// each dependency that cannot be locked.
func (f *Fetcher) Lock(ctx context.Context, s *stack.Source, old Lock, upgrade bool) (Lock, error) {
	out := Lock{Charts: map[string][]LockedChart{}}
	err := forEachUnvendored(s, func(dir string, n Requirement) error {
		l, known := old.Find(dir, n)
		var err error
		// A chart of the stack itself may change at any time, so it is always resolved anew.
		if known && !upgrade && !n.isLocalPath() {
			_, err = f.fetchLocked(ctx, s.Files, dir, l)
		} else {
			l, err = f.resolve(ctx, s.Files, dir, n, old, out)
		}
		if err == nil && !slices.Contains(out.Charts[dir], l) { // it may be needed twice, with other aliases
			out.Charts[dir] = append(out.Charts[dir], l)
		}
		return err
	})
	return out, err
}

// Vendor fetches what a source has locked. Everything that a chart needs must be locked, or in the
// source. With an error it returns what it could get.
func (f *Fetcher) Vendor(ctx context.Context, s *stack.Source) (stack.VendoredCharts, error) {
	lock, err := ParseLock(s.Files)
	if err != nil {
		return nil, err
	}
	out := stack.VendoredCharts{}
	err = forEachUnvendored(s, func(dir string, n Requirement) error {
		l, ok := lock.Find(dir, n)
		if !ok {
			return fmt.Errorf("%s of %s is neither in %s/charts nor locked; run polder stack lock",
				fetch.Sanitize(n.Name+" "+n.Version), fetch.Sanitize(n.Repository), dir)
		}
		b, err := f.fetchLocked(ctx, s.Files, dir, l)
		if err != nil {
			return err
		}
		if out[dir] == nil {
			out[dir] = archive.Tree{}
		}
		out[dir][path.Join("charts", l.Name+"-"+l.Version+".tgz")] = b
		return nil
	})
	return out, err
}

// forEachUnvendored calls do for every dependency of a source that is not vendored. It goes on after an error,
// and joins them.
func forEachUnvendored(s *stack.Source, do func(dir string, n Requirement) error) error {
	var errs []error
	for _, dir := range s.ChartDirs() {
		requirements, err := ListRequirements(s.Files, dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, n := range requirements {
			if IsVendored(s.Files, dir, n) {
				continue
			}
			err := n.check(dir)
			if err == nil {
				err = n.checkStaleVendored(s.Files, dir, requirements)
			}
			if err == nil {
				err = do(dir, n)
			}
			if err != nil {
				errs = append(errs, n.wrapError(dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// resolve finds the newest version that is wanted, and its digest. None of the known locks may have the
// same version with another digest.
func (f *Fetcher) resolve(ctx context.Context, files archive.Tree, dir string, n Requirement,
	known ...Lock) (LockedChart, error) {
	l := LockedChart{Name: n.Name, Repository: n.Repository, Wanted: n.Version}
	available, err := f.listVersions(ctx, files, dir, n)
	if err != nil {
		return l, err
	}
	if l.Version, err = newestMatching(n, available); err != nil {
		return l, err
	}
	b, err := f.download(ctx, files, dir, &l)
	if err != nil {
		return l, err
	}
	if err := checkChart(b, l); err != nil {
		return l, err
	}
	l.Digest = digest(b)
	if n.isLocalPath() {
		return l, nil // the stack itself has it, and may change it
	}
	for _, k := range known {
		if err := k.checkNotRepublished(l); err != nil {
			return l, err
		}
	}
	return l, f.Cache.put(l.Digest, b)
}

// fetchLocked gets a locked chart from the cache or from where it is, and checks its digest.
func (f *Fetcher) fetchLocked(ctx context.Context, files archive.Tree, dir string, l LockedChart) ([]byte, error) {
	// What the stack itself has is not cached: the cache would hide that it has changed.
	inStack := Requirement{Repository: l.Repository}.isLocalPath()
	b, cached := []byte(nil), false
	if !inStack {
		b, cached = f.Cache.get(l.Digest)
	}
	if !cached {
		var err error
		if b, err = f.download(ctx, files, dir, &l); err != nil {
			return nil, err
		}
	}
	switch got := digest(b); {
	case got == l.Digest:
	case inStack:
		return nil, fmt.Errorf("the chart that %s leads to has changed since it was locked; run polder stack lock",
			fetch.Sanitize(l.Repository))
	default:
		return nil, changedError(l, got)
	}
	if err := checkChart(b, l); err != nil {
		return nil, err
	}
	if inStack || cached {
		return b, nil
	}
	return b, f.Cache.put(l.Digest, b)
}
