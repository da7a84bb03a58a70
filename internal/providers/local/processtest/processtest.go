// Package processtest is what the local provider's tests have in common: waiting for processes,
// and directories short enough for their sockets. It is for tests only.
package processtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// eventuallyTimeout is generous: test machines are shared, and slow at times.
const eventuallyTimeout = 40 * time.Second

// Eventually polls until ok holds, and ends the test if it does not in good time.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(eventuallyTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// IsAlive says whether there is such a process that is not a zombie.
func IsAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// ShortDir is a directory for sockets, whose paths may not be long; it is gone after the test.
func ShortDir(t testing.TB, pattern string) string {
	t.Helper()
	d, err := os.MkdirTemp("", pattern)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	return d
}
