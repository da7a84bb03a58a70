package lineage_test

import (
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
)

func TestCheckUpgrade(t *testing.T) {
	for name, c := range map[string]struct{ from, to, reason string }{
		"the same":               {"v1.35.7", "v1.35.7", ""},
		"a patch up":             {"v1.35.7", "v1.35.8", ""},
		"a patch down":           {"v1.35.7", "v1.35.6", v1alpha1.ReasonVersionLower},
		"a minor up":             {"v1.35.7", "v1.36.0", ""},
		"two minors up":          {"v1.35.7", "v1.37.0", v1alpha1.ReasonVersionSkips},
		"a minor down":           {"v1.36.3", "v1.35.9", v1alpha1.ReasonVersionLower},
		"the minor it has":       {"v1.36.3", "1.36", ""},
		"a minor down, alone":    {"v1.36.3", "1.35", v1alpha1.ReasonVersionLower},
		"a minor up, alone":      {"v1.36.3", "1.37", ""},
		"two minors up, alone":   {"v1.36.3", "1.38", v1alpha1.ReasonVersionSkips},
		"nobody knows from what": {"", "v1.36.3", ""},
		"nobody knows to what":   {"v1.36.3", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, reason := lineage.CheckUpgrade(c.from, c.to)
			if reason != c.reason || (why == "") != (c.reason == "") {
				t.Errorf("%q %q, want %q", why, reason, c.reason)
			}
		})
	}
}
