//go:build fault

package plane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/polder-kaas/polder/internal/plane/supervisor"
)

// injectFaults lets tests make a component fail while it runs: they write "KIND COMPONENT" to
// the file "fault" in the data directory. Kinds:
//
//	panic      the component's own goroutine panics
//	crash      another goroutine panics, which no Go program survives
//	error      the component ends with an error
//	return     the component ends without an error
//	fatal      a library calls klog.Fatal
//	stall      the component does not answer questions about its health any more
//
// Components that the file "without" names are not run at all; see excludeComponents.
func injectFaults(dir string, stages []supervisor.Stage) []supervisor.Stage {
	stages = excludeComponents(dir, stages)
	out := make([]supervisor.Stage, len(stages))
	for i, st := range stages {
		for _, c := range st {
			out[i] = append(out[i], &faultyComponent{Component: c, file: filepath.Join(dir, "fault")})
		}
	}
	return out
}

// faultyComponent is a component that fails when a test asks for it.
type faultyComponent struct {
	supervisor.Component
	file string
}

// requestedFault reads which fault this component is to have.
func (f *faultyComponent) requestedFault() string {
	b, err := os.ReadFile(f.file)
	if err != nil {
		return ""
	}
	kind, name, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if name != f.Name() {
		return ""
	}
	return kind
}

func (f *faultyComponent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.Component.Run(ctx) }()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-t.C:
		}
		switch f.requestedFault() {
		case "panic":
			panic("injected")
		case "crash":
			go func() { panic("injected") }()
		case "error":
			return errors.New("injected")
		case "return":
			return nil
		case "fatal":
			klog.Fatalf("injected by %s", f.Name())
		}
	}
}

func (f *faultyComponent) Healthy(ctx context.Context) error {
	if f.requestedFault() == "stall" {
		select {} // ignores ctx, as something that hangs does
	}
	if h, ok := f.Component.(supervisor.HealthChecker); ok {
		return h.Healthy(ctx)
	}
	return nil
}
