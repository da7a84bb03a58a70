package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Scene measures something.
type Scene struct {
	Name string
	// Run returns what it has measured, also if it then failed.
	Run func(context.Context) (Rows, error)
}

// Runner runs scenes and keeps their rows. Its zero value is ready for use.
type Runner struct {
	rows Rows
	only string // a part of the names of scenes to run
}

// Run runs scenes one after the other. One that fails does not keep the next from being measured; an interrupt does.
func (r *Runner) Run(ctx context.Context, scenes ...Scene) error {
	var errs []error
	for _, s := range scenes {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, fmt.Errorf("%s: %w", s.Name, err))...)
		}
		if !strings.Contains(s.Name, r.only) {
			continue
		}
		Logf("%s", s.Name)
		rows, err := s.Run(ctx)
		r.Keep(rows)
		if err != nil {
			Logf("%s: failed: %v", s.Name, err)
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Keep adds rows that no scene has alone, since they compare what several have measured.
func (r *Runner) Keep(rows Rows) { r.rows = append(r.rows, rows...) }

// Sleep waits, unless ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Repeat does the same n times and returns how long each took.
func Repeat(n int, work func() error) ([]time.Duration, error) {
	var all []time.Duration
	for range n {
		begin := time.Now()
		if err := work(); err != nil {
			return all, err
		}
		all = append(all, time.Since(begin))
	}
	return all, nil
}

// Logf prints progress for people at a terminal.
func Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
