package reconciletest

import (
	"runtime"
	"strings"
)

// reconcilerStacks returns the stacks of goroutines that are in a reconciler, a controller or another part of a
// manager: they show why a process does not end.
func reconcilerStacks() string {
	b := make([]byte, 4<<20)
	b = b[:runtime.Stack(b, true)]
	var out []string
	for g := range strings.SplitSeq(string(b), "\n\n") {
		if strings.Contains(g, ".Reconcile(") || strings.Contains(g, "controller-runtime/pkg/manager.") ||
			strings.Contains(g, "internal/controller.(*Controller") {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}
