package stackauthor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// releaseFlags are the flags of commands that take a source, a release directory or a published
// release.
type releaseFlags struct {
	registryFlags
	kubernetes string
}

// addFlags is for commands that take a source as well as a release.
func (a *releaseFlags) addFlags(c *cobra.Command) {
	a.registryFlags.addFlags(c)
	c.Flags().StringVar(&a.kubernetes, "kubernetes", "",
		"`minor` of Kubernetes, of a source that serves several (default: the newest), or the patch where it names none")
}

// loadRelease reads a release from wherever it is. A source is built in memory, as mode hash does.
func (a *releaseFlags) loadRelease(ctx context.Context, stdin io.Reader, arg string) (*stack.Release, error) {
	if strings.HasPrefix(arg, "oci://") {
		store, ref, err := a.openStore(ctx, stdin, arg)
		if err != nil {
			return nil, err
		}
		p, err := store.Pull(ctx, ref)
		if err != nil {
			return nil, err
		}
		return p.Release, nil
	}
	files, err := readStack(arg)
	if err != nil {
		return nil, err
	}
	if stack.IsRelease(files) {
		return registry.LoadDir(arg)
	}
	return a.buildRelease(ctx, stdin, arg, files)
}

// buildRelease takes a version that follows from the content: the release is only looked at, never published.
func (a *releaseFlags) buildRelease(ctx context.Context, stdin io.Reader, dir string,
	files archive.Tree) (*stack.Release, error) {
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil, wrapDirError(dir, err)
	}
	if a.kubernetes != "" {
		if s, err = sourceForKubernetes(s, a.kubernetes); err != nil {
			return nil, err
		}
	}
	f, err := a.chartFetcher(stdin)
	if err != nil {
		return nil, err
	}
	deps, _ := f.Vendor(ctx, s) // a chart without what it needs does not render, and says so
	s = s.WithPatch()
	v, err := s.Plan(stack.ModeHash, stack.History{})
	if err != nil {
		return nil, wrapDirError(dir, err)
	}
	r, err := s.Build(v, deps)
	return r, wrapDirError(dir, err)
}

// wrapDirError says which directory errors are about, each on a line of its own.
func wrapDirError(dir string, err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return exit.With(exit.Code(err), errors.New(dir+":\n  "+strings.Join(lines, "\n  ")))
}
