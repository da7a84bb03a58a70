package registry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/polder-kaas/polder/stack/version"
)

// Limits of a listing.
const (
	maxPages      = 100
	maxTags       = 10_000
	parallelReads = 4 // manifests that are read at once
)

// referrerTagPattern matches tags that other tools give to what they add to an artifact, such as its signature.
var referrerTagPattern = regexp.MustCompile(`^sha256-[0-9a-f]{64}(\.[a-z]+)?$`)

// List reads the tags, and the manifest of each that is the name of a release.
func (s *oci) List(ctx context.Context, only func(version.ReleaseName) bool) (Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tags, err := s.listTags(ctx)
	if err != nil {
		return Listing{}, fmt.Errorf("listing %s: %w", s.reference.Location(), err)
	}
	var l Listing
	l.Entries, l.Warnings = parseReleases(tags, tagItem, only)
	s.fillEntries(ctx, &l)
	// A listing that was given up is an error: half of one would look whole.
	if err := ctx.Err(); err != nil {
		return Listing{}, fmt.Errorf("listing %s: %w", s.reference.Location(), s.explain(err))
	}
	return l, nil
}

// listTags reads all pages of tags. A registry that goes on for ever, or in circles, is an error: half a
// list would not show that there is something newer.
func (s *oci) listTags(ctx context.Context) ([]string, error) {
	var all []string
	var bad error
	seen := map[string]bool{}
	err := s.repository.Tags(ctx, "", func(page []string) error {
		before := len(all)
		for _, tag := range page {
			if !seen[tag] {
				seen[tag] = true
				all = append(all, tag)
			}
		}
		switch {
		case len(all) > maxTags:
			bad = fmt.Errorf("registry %s lists more than %d tags", s.reference.Host, maxTags)
		case len(all) == before && len(page) > 0:
			bad = fmt.Errorf("registry %s lists the same tags again and again", s.reference.Host)
		}
		return bad
	})
	if bad != nil {
		return nil, bad
	}
	return all, s.explain(err)
}

// parseReleases gives the names that are those of releases, sorted; other names are warnings. A release
// that is not spelled as we spell it could not be found by its name.
func parseReleases(names []string, item string, only func(version.ReleaseName) bool) ([]Entry, []Warning) {
	var entries []Entry
	var warnings []Warning
	for _, name := range names {
		if referrerTagPattern.MatchString(name) {
			continue
		}
		r, err := version.ParseReleaseName(name)
		switch {
		case err != nil:
			warnings = append(warnings, Warning{Kind: NotRelease, Item: item, Name: name, Err: err})
		case r.Tag() != name:
			warnings = append(warnings, Warning{Kind: Misspelled, Item: item, Name: name, Release: r})
		case only == nil || only(r):
			entries = append(entries, Entry{Release: r, Kubernetes: r.Kubernetes.MinorString()})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return version.CompareReleaseNames(a.Release, b.Release) })
	slices.SortFunc(warnings, func(a, b Warning) int { return strings.Compare(a.String(), b.String()) })
	return entries, warnings
}

// fillEntries reads the manifest of each entry. Those that cannot be read become warnings.
func (s *oci) fillEntries(ctx context.Context, l *Listing) {
	warnings := make([]*Warning, len(l.Entries))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(parallelReads, len(l.Entries)) {
		all.Go(func() {
			for i := range next {
				warnings[i] = s.fillEntry(ctx, &l.Entries[i])
			}
		})
	}
	for i := range l.Entries {
		next <- i
	}
	close(next)
	all.Wait()
	for _, w := range warnings {
		if w != nil {
			l.Warnings = append(l.Warnings, *w)
		}
	}
	l.Entries = slices.DeleteFunc(l.Entries, func(e Entry) bool { return e.Digest == "" })
}

// fillEntry fills an entry, and returns a warning or nil.
func (s *oci) fillEntry(ctx context.Context, e *Entry) *Warning {
	w := Warning{Kind: Unreadable, Item: tagItem, Name: e.Release.Tag(), Release: e.Release}
	b, digest, err := s.readManifest(ctx, e.Release.Tag())
	if err != nil {
		w.Err = err
		return &w
	}
	m, err := parseManifest(b)
	if err != nil {
		w.Err = err
		return &w
	}
	e.Digest = digest
	annotated, ok := m.Annotations[annotationKubernetes]
	if !ok {
		return nil
	}
	k, err := version.ParseKubernetes(annotated)
	if err == nil && !k.SameMinor(e.Release.Kubernetes) {
		err = errors.New("its name says otherwise")
	}
	if err != nil {
		w.Kind, w.Kubernetes, w.Err = InvalidKubernetes, annotated, err
		return &w
	}
	e.Kubernetes = k.String()
	return nil
}
