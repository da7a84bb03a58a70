package stackauthor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/dependency"
)

// newLockCommand is polder stack lock.
func newLockCommand() *cobra.Command {
	var r registryFlags
	var upgrade bool
	c := &cobra.Command{
		Use:   "lock [DIR]",
		Short: "Resolve the charts that a stack's charts need",
		Long: `lock finds the charts that Chart.yaml files of the stack name as dependencies and that do not lie in their
charts directories: in Helm repositories (https://…), OCI registries (oci://…) and directories of the stack
(file://…). It writes their exact versions and digests into stack.lock, and keeps the charts for builds. What
is locked stays as it is while it fits, unless --upgrade is given.

Hosts that charts name must have public addresses. Only those given with --trust may have others, and only
those get the password of --username.`,
		Args: cmdline.Args(0, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			dir := dirArg(args)
			s, err := readSource(dir, "")
			if err != nil {
				return err
			}
			old, err := dependency.ParseLock(s.Files)
			if err != nil {
				return wrapDirError(dir, err)
			}
			f, err := r.chartFetcher(c.InOrStdin())
			if err != nil {
				return err
			}
			lock, err := f.Lock(c.Context(), s, old, upgrade)
			if err != nil {
				return wrapDirError(dir, err)
			}
			n := 0
			for _, chart := range s.ChartDirs() {
				for _, l := range lock.Charts[chart] {
					n++
					fmt.Fprintf(c.OutOrStdout(), "%s: %s %s %s\n", chart, l.Name, l.Version, l.Digest)
				}
			}
			if n == 0 {
				fmt.Fprintln(c.OutOrStdout(), "No chart of the stack needs one that it does not have; there is nothing to lock.")
				if err := os.Remove(filepath.Join(dir, stack.LockFile)); !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return nil
			}
			b, err := lock.Marshal()
			if err != nil {
				return err
			}
			return atomicfile.Write(filepath.Join(dir, stack.LockFile), b, 0o644)
		},
	}
	r.addFlags(c)
	c.Flags().BoolVar(&upgrade, "upgrade", false, "resolve everything anew")
	return c
}
