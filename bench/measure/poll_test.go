package measure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoll(t *testing.T) {
	notYet, ended := errors.New("not yet"), errors.New("it has ended")
	for _, tt := range []struct {
		name  string
		poll  Poll
		after time.Duration // until asking succeeds
		took  time.Duration
		err   error
		last  bool // the last answer is part of the error
	}{
		{"at once", Poll{Every: time.Second}, 0, 0, nil, false},
		{"later", Poll{Every: time.Second}, 2 * time.Second, 2 * time.Second, nil, false},
		{"too late", Poll{Every: 2 * time.Second, Timeout: 5 * time.Second}, time.Minute, 5 * time.Second, context.DeadlineExceeded, true},
		{"default timeout", Poll{Every: time.Second}, time.Hour, WaitTimeout, context.DeadlineExceeded, true},
		{"stopped", Poll{Every: time.Second, Stop: func() error { return ended }}, time.Minute, 0, ended, false},
		{"success before stop", Poll{Every: time.Second, Stop: func() error { return ended }}, 0, 0, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := tt.poll.Do(t.Context(), "it", func(context.Context) error {
					if time.Since(begin) < tt.after {
						return notYet
					}
					return nil
				})
				if !errors.Is(err, tt.err) || errors.Is(err, notYet) != tt.last {
					t.Errorf("got %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "waiting for it") {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
			})
		})
	}
}
