package releases

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestNamespaceQuota(t *testing.T) {
	type step struct {
		after time.Duration
		of    string
		bytes int64
		spent bool // before these are counted
	}
	for name, steps := range map[string][]step{
		"nothing was downloaded":    {{0, "a", 0, false}},
		"less than the share":       {{0, "a", 999, false}, {0, "a", 0, false}},
		"the share":                 {{0, "a", 1000, false}, {0, "a", 0, true}},
		"many small ones":           {{0, "a", 400, false}, {0, "a", 400, false}, {0, "a", 400, false}, {0, "a", 0, true}},
		"each has its own":          {{0, "a", 1000, false}, {0, "b", 0, false}, {0, "a", 0, true}},
		"the plane's own have none": {{0, "", 9000, false}, {0, "", 9000, false}},
		"it fades":                  {{0, "a", 1500, false}, {29 * time.Minute, "a", 0, true}, {2 * time.Minute, "a", 0, false}},
		"what is asked for often fades, too": {
			{0, "a", 1500, false}, {10 * time.Minute, "a", 0, true}, {10 * time.Minute, "a", 0, true}, {11 * time.Minute, "a", 0, false},
		},
		"what was left counts on": {{0, "a", 900, false}, {30 * time.Minute, "a", 700, false}, {0, "a", 0, true}, {7 * time.Minute, "a", 0, false}},
		"nothing is saved up":     {{0, "a", 1, false}, {100 * time.Hour, "a", 1000, false}, {time.Minute / 2, "a", 400, false}, {0, "a", 0, true}},
		"far too much fades, too": {{0, "a", 5000, false}, {239 * time.Minute, "a", 0, true}, {2 * time.Minute, "a", 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := namespaceQuota{bytesPerHour: 1000, clock: clock.RealClock{}}
				for i, s := range steps {
					time.Sleep(s.after)
					if err := h.check(s.of); errors.Is(err, errQuotaExceeded) != s.spent {
						t.Errorf("step %d: %v", i, err)
					}
					if s.bytes > 0 {
						h.add(s.of, s.bytes)
					}
				}
			})
		})
	}
}

// Namespaces that are gone leave nothing behind.
func TestNamespaceQuotaForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := namespaceQuota{bytesPerHour: 1000, clock: clock.RealClock{}}
		h.add("a", 500)
		h.add("b", 1000)
		time.Sleep(45 * time.Minute)
		h.add("c", 1)
		if len(h.byNamespace) != 2 || h.byNamespace["b"].bytes != 1000 || h.byNamespace["c"].bytes != 1 {
			t.Errorf("%v", h.byNamespace)
		}
	})
}
