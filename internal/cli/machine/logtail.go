package machine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// allLines means as many as are kept.
const allLines = -1

// logTail reads a log that is set aside from time to time: its end is at path, what was before at
// path.1, before that at path.2 and so on. A part that was set aside is not written any more.
type logTail struct {
	path         string
	lines        int // how many of the last ones; or allLines
	follow       bool
	pollInterval time.Duration // how often a followed log is looked at
}

// copy writes the lines wanted and, if the log is followed, those that are added until ctx ends.
// Without a log the error is fs.ErrNotExist.
func (t logTail) copy(ctx context.Context, w io.Writer) error {
	f, err := t.openAtFirstLine()
	for errors.Is(err, fs.ErrNotExist) && t.follow && t.wait(ctx) {
		f, err = t.openAtFirstLine()
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it may be another one by then
	for {
		next, err := t.openNextPart(f)
		// Only now: until the next part was there, lines could be added to this one.
		if _, copyErr := io.Copy(w, f); copyErr != nil || err != nil {
			return errors.Join(copyErr, err)
		}
		if next == nil && (!t.follow || !t.wait(ctx)) {
			return nil
		}
		if next != nil {
			_ = f.Close() // read only
			f = next
		}
	}
}

// wait says false when ctx has ended.
func (t logTail) wait(ctx context.Context) bool {
	timer := time.NewTimer(t.pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
