package output

import (
	"testing"
	"time"
)

func TestFormatAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{"3s": 3200 * time.Millisecond, "1m5s": 65 * time.Second, "2h3m": 2*time.Hour + 3*time.Minute,
		"47h0m": 47 * time.Hour, "3d": 80 * time.Hour} {
		if got := Age(now, now.Add(-d)); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
	if got := Age(now, time.Time{}); got != "-" {
		t.Errorf("age of never = %s", got)
	}
}
