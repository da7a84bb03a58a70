// Package fault is the long matrix behind `make fault`: what test/plane samples in minutes, in
// full. Counts can be lowered with POLDER_FAULT_RUNS for a first look.
package fault

import (
	"os"
	"strconv"
	"testing"
	"time"
)

const wait = 3 * time.Minute

// runs is how often a fault is tried: n, or fewer if the environment says so.
func runs(t *testing.T, n int) int {
	t.Helper()
	s := os.Getenv("POLDER_FAULT_RUNS")
	if s == "" {
		return n
	}
	limit, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("POLDER_FAULT_RUNS=%s is not a number", s)
	}
	return min(n, limit)
}
