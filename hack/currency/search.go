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

// found is a version that is to be had, missing one that is not.
type found struct {
	number
	release
}

type missing struct {
	number
	Refused bool
}

// newer is what there is above a pinned version.
type newer struct {
	Patches []found   // of the same minor
	Gaps    []missing // between these patches
	Next    missing   // the number after the newest patch
	Minors  []found   // one version of each newer minor: its first
	Newest  []found   // what there is of the newest minor
}

// search asks for the numbers that follow a version of one module, because lists of versions are
// not to be had everywhere.
type search struct {
	Ask  asker
	Path string
}

// run looks for newer patches and minors.
func (s search) run(ctx context.Context, pinned number) (newer, error) {
	var n newer
	var misses []missing
	var err error
	if n.Patches, misses, err = s.patches(ctx, pinned.next()); err != nil {
		return n, err
	}
	n.Gaps, n.Next = splitMisses(n.Patches, misses)
	if n.Minors, err = s.minors(ctx, pinned); err != nil || len(n.Minors) == 0 {
		return n, err
	}
	first := n.Minors[len(n.Minors)-1]
	more, _, err := s.patches(ctx, first.next())
	n.Newest = append([]found{first}, more...)
	return n, err
}

// patches asks for from and the patches after it until more than patchGap in a row are missing.
func (s search) patches(ctx context.Context, from number) (hits []found, misses []missing, err error) {
	for gap := 0; gap <= patchGap; from.Patch++ {
		hit, miss, err := s.one(ctx, from)
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

// minors asks for the minors after n. A minor whose first release is missing may have a second one.
func (s search) minors(ctx context.Context, n number) ([]found, error) {
	var hits []found
	for gap := 0; gap <= minorGap; {
		n = n.nextMinor()
		hit, _, err := s.one(ctx, n)
		if hit == nil && err == nil {
			hit, _, err = s.one(ctx, n.next())
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

// one asks for one version. Only if the answer is that it is not to be had, it is missing.
func (s search) one(ctx context.Context, n number) (*found, missing, error) {
	r, err := s.Ask(ctx, s.Path, n.String())
	switch {
	case errors.Is(err, errRefused):
		return nil, missing{n, true}, nil
	case errors.Is(err, errUnknown):
		return nil, missing{n, false}, nil
	case err != nil:
		return nil, missing{}, err
	}
	return &found{n, r}, missing{}, nil
}

// splitMisses tells gaps between patches from the first number after the newest.
func splitMisses(hits []found, misses []missing) (gaps []missing, next missing) {
	for _, m := range misses {
		if len(hits) == 0 || m.Patch > hits[len(hits)-1].Patch {
			return gaps, m
		}
		gaps = append(gaps, m)
	}
	return gaps, next
}
