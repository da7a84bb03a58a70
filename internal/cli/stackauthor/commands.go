// Package stackauthor has polder stack, for authors of cluster stacks.
package stackauthor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/stackstatus"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// NewCommand is polder stack: everything for authors of cluster stacks. Nothing but status needs a plane.
func NewCommand(g *connect.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "stack",
		Short: "Write, check, build and publish cluster stacks",
		Args:  cmdline.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
		Long: `A cluster stack says what a good cluster is made of: the class of its control plane and workers, and
its add-ons. A stack is a directory; a release of it is what clusters are made from.

  polder stack init DIR        makes a stack to begin with
  polder stack lint DIR        finds everything that would fail later
  polder stack lock DIR        resolves the charts that its charts need
  polder stack build DIR       makes a release
  polder stack render DIR      shows the objects it renders to
  polder stack params DIR      shows which parameters clusters have
  polder stack publish DIR TO  puts a release into a registry or a directory
  polder stack list FROM       shows which releases there are
  polder stack pull FROM DIR   gets one

  polder stack status          says how the stacks in the plane are, and what to do next`,
	}
	c.AddCommand(newInitCommand(), newLintCommand(), newLockCommand(), newBuildCommand(), newRenderCommand(),
		newParamsCommand(), newPublishCommand(), newPullCommand(), newListCommand(), stackstatus.NewCommand(g))
	return c
}

// readStack reads the source of a stack, or a release, from a directory. It looks first whether it is
// one: somebody may name a large directory by mistake.
func readStack(dir string) (archive.Tree, error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() && !isStack(dir) {
		return nil, fmt.Errorf("%s: there is no stack.yaml, so this is no stack; polder stack init makes one", dir)
	}
	t, err := archive.ReadDir(dir, archive.DefaultLimits, isIgnoredFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.Usage, "there is no directory %s", dir)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// isStack knows the configuration files of csctl and csmctl too, and the metadata of a release.
func isStack(dir string) bool {
	for _, name := range []string{"stack.yaml", "csctl.yaml", "csmctl.yaml", "metadata.yaml"} {
		if isFile(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

// isIgnoredFile are directories that tools leave in a stack's directory.
func isIgnoredFile(name string, isDir bool) bool {
	switch filepath.Base(name) {
	case ".git", ".release", ".tmp":
		return isDir
	case ".DS_Store":
		return true
	}
	return false
}

// dirArg is the one argument of commands on a directory; without it, the current one.
func dirArg(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// readSource reads the source of a stack, for one of its minors of Kubernetes.
func readSource(dir, kubernetes string) (*stack.Source, error) {
	files, err := readStack(dir)
	if err != nil {
		return nil, err
	}
	s, err := stack.ParseSource(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if kubernetes == "" {
		return s, nil
	}
	return sourceForKubernetes(s, kubernetes)
}

// sourceForKubernetes tells a mistyped minor, which is wrong usage, from one that the stack does not serve.
func sourceForKubernetes(s *stack.Source, text string) (*stack.Source, error) {
	k, err := version.ParseKubernetes(text)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return s.ForKubernetes(k)
}
