package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// config is what a check depends on.
type config struct {
	Root     fs.FS    // the repository
	ModFiles []string // names of go.mod files in Root
	Lookup   lookupFunc
	Now      time.Time
}

// check writes the report and returns the exit code. On an error nothing is written.
func check(ctx context.Context, c config, out io.Writer) (int, error) {
	table, err := readSupportTable(c.Root)
	if err != nil {
		return 0, err
	}
	sections, err := readSections(c, table)
	if err != nil {
		return 0, err
	}
	if err := searchAll(ctx, c.Lookup, sections); err != nil {
		return 0, fmt.Errorf("%w; what is newer is not known, so see that modules can be downloaded and try again", err)
	}
	v := assessVersions(sections, table, c.Now)
	writeReport(out, sections, v, c.Now)
	if len(v.Findings) > 0 {
		return exitBehind, nil
	}
	return exitCurrent, nil
}

// searchAll searches for what is newer, once for rows with the same version of the same module. The
// first error ends all searches.
func searchAll(ctx context.Context, lookup lookupFunc, sections []section) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var once sync.Once
	var first error
	for _, rows := range groupRows(sections) {
		s := search{Lookup: lookup, Path: rows[0].Path}
		if rows[0].Offered {
			s.Lookup = lookupKubernetes(lookup)
		}
		all.Go(func() {
			n, err := s.run(ctx, rows[0].Number)
			if err != nil {
				// The errors of the other searches then only say that they were cancelled.
				once.Do(func() { first = err; cancel() })
				return
			}
			for _, r := range rows {
				r.Newer = n
			}
		})
	}
	all.Wait()
	if first != nil {
		return first
	}
	return checkNotAllRefused(sections)
}

func groupRows(sections []section) map[string][]*row {
	groups := map[string][]*row{}
	for _, s := range sections {
		for _, r := range s.Rows {
			if r.isSearchable() {
				key := fmt.Sprint(r.Path, "@", r.Version, r.Offered)
				groups[key] = append(groups[key], r)
			}
		}
	}
	return groups
}

// checkNotAllRefused returns an error if all that was asked for was refused: a proxy that lets nobody in
// would otherwise look like one that has nothing newer.
func checkNotAllRefused(sections []section) error {
	refused := false
	for _, s := range sections {
		for _, r := range s.Rows {
			if len(r.Newer.Patches)+len(r.Newer.Minors) > 0 || r.isSearchable() && !r.Newer.Next.Refused {
				return nil
			}
			refused = refused || r.isSearchable()
		}
	}
	if refused {
		return errors.New("the proxy refuses all versions that were asked for")
	}
	return nil
}
