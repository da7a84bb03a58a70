package audit

import (
	"bytes"
	"context"
	"slices"
)

// Query says which events are wanted.
type Query struct {
	Limit    int   // how many at most
	MaxBytes int64 // how much of the record is looked through at most
	// Contains are texts of which a line has one at least: most lines are passed over without being read.
	Contains []string
	Match    func(Event) bool
}

// ReadNewest returns the newest events that match, the newest first. all says that the whole record was looked through,
// or that there were as many as wanted.
func ReadNewest(ctx context.Context, dataDir string, q Query) (found []Event, all bool, err error) {
	files, err := listFiles(Dir(dataDir))
	if err != nil {
		return nil, false, err
	}
	slices.Reverse(files)
	left := q.MaxBytes
	for _, file := range files {
		if left <= 0 {
			return found, false, nil
		}
		var here []Event // the newest of this file, the oldest first
		err := readLines(file, func(line []byte) error {
			if left -= int64(len(line)); ctx.Err() != nil {
				return ctx.Err()
			}
			if !slices.ContainsFunc(q.Contains, func(s string) bool { return bytes.Contains(line, []byte(s)) }) {
				return nil
			}
			e, err := parse(slices.Clone(line))
			if err != nil || !q.Match(e) {
				return nil //nolint:nilerr // a line that was not written whole
			}
			if here = append(here, e); len(here) > 2*q.Limit {
				here = slices.Delete(here, 0, len(here)-q.Limit)
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		slices.Reverse(here)
		if found = append(found, here...); len(found) >= q.Limit {
			return found[:q.Limit], true, nil
		}
	}
	return found, true, nil
}
