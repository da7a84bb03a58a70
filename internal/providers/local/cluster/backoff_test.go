package cluster

import (
	"testing"
	"time"
)

func TestHostBackoff(t *testing.T) {
	type step struct {
		at    time.Duration
		event string // ended, forget, or nothing
		want  time.Duration
		ended bool
	}
	for name, steps := range map[string][]step{
		"the first start is at once":  {{at: 0, want: 0}},
		"it is starting, asked often": {{want: 0}, {at: 10 * time.Millisecond, want: startPollInterval}, {at: 950 * time.Millisecond, want: 50 * time.Millisecond}},
		"it ended, the pause is waited": {{want: 0}, {at: 10 * time.Millisecond, event: "ended", want: 990 * time.Millisecond, ended: true},
			{at: time.Second, want: 0}},
		"pauses double": {
			{want: 0}, {at: time.Second, want: 0}, {at: 2 * time.Second, event: "ended", want: time.Second, ended: true}, {at: 3 * time.Second, want: 0},
			{at: 3 * time.Second, want: startPollInterval}, {at: 4 * time.Second, event: "ended", want: 3 * time.Second, ended: true},
		},
		"up to half a minute": {
			{want: 0}, {at: 1 * time.Second, want: 0}, {at: 3 * time.Second, want: 0}, {at: 7 * time.Second, want: 0}, {at: 15 * time.Second, want: 0},
			{at: 31 * time.Second, want: 0},
			{at: 61 * time.Second, want: 0}, {at: 61 * time.Second, event: "ended", want: 30 * time.Second, ended: true},
		},
		"one that stayed begins anew": {{want: 0}, {at: time.Second, want: 0}, {at: time.Second, event: "forget", want: 0},
			{at: time.Second, event: "ended", want: time.Second, ended: true}},
		"a new start has not ended": {{want: 0}, {at: 0, event: "ended", want: time.Second, ended: true}, {at: time.Second, want: 0},
			{at: time.Second, want: startPollInterval}},
		"the end of one that is not known of":    {{at: 0, event: "ended", want: 0}},
		"to forget one that is not known of":     {{at: 0, event: "forget", want: 0}},
		"a start much later need not be delayed": {{want: 0}, {at: time.Hour, event: "ended", want: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var r hostBackoff
			begin := time.Now()
			for i, s := range steps {
				switch s.event {
				case "ended":
					r.recordExit("u")
				case "forget":
					r.Forget("u")
				}
				if got, ended := r.reserveStart("u", begin.Add(s.at)); got != s.want || ended != s.ended {
					t.Errorf("step %d: %s, %t; want %s, %t", i, got, ended, s.want, s.ended)
				}
			}
			if got, _ := r.reserveStart("another", begin); got != 0 {
				t.Error("another has to wait")
			}
		})
	}
}
