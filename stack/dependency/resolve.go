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
	out := Lock{Charts: map[string][]Locked{}}
	err := each(s, func(dir string, n Need) error {
		l, known := old.Find(dir, n)
		var err error
		if known && !upgrade && !n.path() {
			_, err = f.fetch(ctx, s.Files, dir, l)
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
// source. Beside an error there is what could be got.
func (f *Fetcher) Vendor(ctx context.Context, s *stack.Source) (stack.Vendored, error) {
	lock, err := ParseLock(s.Files)
	if err != nil {
		return nil, err
	}
	out := stack.Vendored{}
	err = each(s, func(dir string, n Need) error {
		l, ok := lock.Find(dir, n)
		if !ok {
			return fmt.Errorf("%s of %s is neither in %s/charts nor locked; run polder stack lock", fetch.Clean(n.Name+" "+n.Version), fetch.Clean(n.Repository), dir)
		}
		b, err := f.fetch(ctx, s.Files, dir, l)
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

// each does something for every dependency of a source that is not vendored.
func each(s *stack.Source, do func(dir string, n Need) error) error {
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
			err := n.check(dir)
			if err == nil {
				err = n.inTheWay(s.Files, dir, needs)
			}
			if err == nil {
				err = do(dir, n)
			}
			if err != nil {
				errs = append(errs, n.failed(dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// resolve finds the newest version that is wanted, and its digest. Nothing of known may have the
// same version with another one.
func (f *Fetcher) resolve(ctx context.Context, files archive.Tree, dir string, n Need, known ...Lock) (Locked, error) {
	l := Locked{Name: n.Name, Repository: n.Repository, Wanted: n.Version}
	have, err := f.versions(ctx, files, dir, n)
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
	if n.path() {
		return l, nil // the stack itself has it, and may change it
	}
	for _, k := range known {
		if err := k.republished(l); err != nil {
			return l, err
		}
	}
	return l, f.Cache.put(l.Digest, b)
}

// fetch gets what was locked, from the cache or from where it is.
func (f *Fetcher) fetch(ctx context.Context, files archive.Tree, dir string, l Locked) ([]byte, error) {
	inStack := Need{Repository: l.Repository}.path()
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
		return nil, fmt.Errorf("the chart that %s leads to has changed since it was locked; run polder stack lock", fetch.Clean(l.Repository))
	default:
		return nil, changed(l, got)
	}
	if err := isChart(b, l); err != nil {
		return nil, err
	}
	if inStack || cached {
		return b, nil
	}
	return b, f.Cache.put(l.Digest, b)
}
