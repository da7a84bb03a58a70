package main

import (
	"context"
	"errors"
)

// How many numbers in a row may be missing before a search ends.
const (
	patchGap = 3
	minorGap = 2
)

// foundVersion is a version that is to be had, missingVersion one that is not.
type foundVersion struct {
	versionNumber
	moduleRelease
}

type missingVersion struct {
	versionNumber
	Refused bool
}

// newerVersions is what there is above a pinned version.
type newerVersions struct {
	Patches     []foundVersion   // of the same minor
	Gaps        []missingVersion // between these patches
	Next        missingVersion   // the number after the newest patch
	Minors      []foundVersion   // one version of each newer minor: its first
	NewestMinor []foundVersion   // what there is of the newest minor
}

// search asks for the numbers that follow a version of one module, because lists of versions are
// not to be had everywhere.
type search struct {
	Lookup lookupFunc
	Path   string
}

// run looks for newer patches and minors.
func (s search) run(ctx context.Context, pinned versionNumber) (newerVersions, error) {
	var n newerVersions
	var misses []missingVersion
	var err error
	if n.Patches, misses, err = s.findPatches(ctx, pinned.nextRelease()); err != nil {
		return n, err
	}
	n.Gaps, n.Next = splitMisses(n.Patches, misses)
	if n.Minors, err = s.findMinors(ctx, pinned); err != nil || len(n.Minors) == 0 {
		return n, err
	}
	first := n.Minors[len(n.Minors)-1]
	more, _, err := s.findPatches(ctx, first.nextRelease())
	n.NewestMinor = append([]foundVersion{first}, more...)
	return n, err
}

// findPatches asks for from and the patches after it until more than patchGap in a row are missing.
func (s search) findPatches(ctx context.Context,
	from versionNumber) (hits []foundVersion, misses []missingVersion, err error) {
	for gap := 0; gap <= patchGap; from.Patch++ {
		hit, miss, err := s.lookupVersion(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		if hit == nil {
			misses = append(misses, miss)
			gap++
			continue
		}
		hits, gap = append(hits, *hit), 0
	}
	return hits, misses, nil
}

// findMinors asks for the minors after n. A minor whose first release is missing may have a second one.
func (s search) findMinors(ctx context.Context, n versionNumber) ([]foundVersion, error) {
	var hits []foundVersion
	for gap := 0; gap <= minorGap; {
		n = n.nextMinor()
		hit, _, err := s.lookupVersion(ctx, n)
		if hit == nil && err == nil {
			hit, _, err = s.lookupVersion(ctx, n.nextRelease())
		}
		if err != nil {
			return nil, err
		}
		if hit == nil {
			gap++
			continue
		}
		hits, gap = append(hits, *hit), 0
	}
	return hits, nil
}

// lookupVersion asks for one version. It is missing only if the answer is that it is not to be had.
func (s search) lookupVersion(ctx context.Context, n versionNumber) (*foundVersion, missingVersion, error) {
	r, err := s.Lookup(ctx, s.Path, n.String())
	switch {
	case errors.Is(err, errRefused):
		return nil, missingVersion{n, true}, nil
	case errors.Is(err, errUnknown):
		return nil, missingVersion{n, false}, nil
	case err != nil:
		return nil, missingVersion{}, err
	}
	return &foundVersion{n, r}, missingVersion{}, nil
}

// splitMisses tells gaps between patches from the first number after the newest.
func splitMisses(hits []foundVersion, misses []missingVersion) (gaps []missingVersion, next missingVersion) {
	for _, m := range misses {
		if len(hits) == 0 || m.Patch > hits[len(hits)-1].Patch {
			return gaps, m
		}
		gaps = append(gaps, m)
	}
	return gaps, next
}
