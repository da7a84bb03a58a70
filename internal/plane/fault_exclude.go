//go:build fault

package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/internal/plane/supervisor"
)

// excludeComponents replaces the components that the file "without" in the data directory names, with white space
// between: tests of a controller run it themselves.
func excludeComponents(dir string, stages []supervisor.Stage) []supervisor.Stage {
	b, err := os.ReadFile(filepath.Join(dir, "without"))
	if err != nil {
		return stages // no file: none is excluded
	}
	names := strings.Fields(string(b))
	out := make([]supervisor.Stage, len(stages))
	for i, st := range stages {
		for _, c := range st {
			if n := slices.Index(names, c.Name()); n >= 0 {
				names = slices.Delete(names, n, n+1)
				c = newExcludedComponent(c.Name(), nil)
			}
			out[i] = append(out[i], c)
		}
	}
	for _, n := range names {
		err := fmt.Errorf("there is no component %s that could be left out", n)
		out[0] = append(out[0], newExcludedComponent(n, err))
	}
	return out
}

// excludedComponent stands in for a component that is excluded: it is ready at once and does nothing, or fails at
// once.
type excludedComponent struct {
	name  string
	err   error
	ready chan struct{}
}

func newExcludedComponent(name string, err error) *excludedComponent {
	return &excludedComponent{name: name, err: err, ready: make(chan struct{})}
}

func (a *excludedComponent) Name() string           { return a.name }
func (a *excludedComponent) Ready() <-chan struct{} { return a.ready }

func (a *excludedComponent) Run(ctx context.Context) error {
	if a.err != nil {
		return a.err
	}
	close(a.ready)
	<-ctx.Done()
	return nil
}
