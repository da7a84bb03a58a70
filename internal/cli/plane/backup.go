package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/backup"
	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/backup/backupfile"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// backupOptions are the flags of polder backup.
type backupOptions struct {
	keys          backupfile.Keys
	localClusters bool
	keep          int
}

// NewBackupCommand is polder backup: it writes a backup of the running plane.
func NewBackupCommand(g *connect.Globals) *cobra.Command {
	var o backupOptions
	c := &cobra.Command{
		Use:   "backup [FILE | DIRECTORY]",
		Short: "Back up the management plane while it serves",
		Long: `backup writes all that a plane needs to one file: its store, its authorities and keys, the content of cluster
stacks, and with --local-clusters the data of local clusters. The plane serves meanwhile. In a directory, by
default the present one, the file gets a name that tells the time. It is encrypted with age: to keys that
--recipient or --recipients-file name, or with a passphrase, which is asked for unless --passphrase-file has it.
polder restore makes a plane of it. polderd serve --backup-dir makes backups by itself.`,
		Args: cmdline.Args(0, 1, "a file or a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			to := "."
			if len(args) == 1 {
				to = args[0]
			}
			return runBackup(c, g, p, to, o)
		},
	}
	f := c.Flags()
	f.StringSliceVarP(&o.keys.Recipients, "recipient", "r", nil,
		"public age `KEY` (age1…) to encrypt the backup to; may be repeated")
	f.StringVarP(&o.keys.RecipientsFile, "recipients-file", "R", "", "`FILE` with such keys, one on each line")
	f.StringVar(&o.keys.PassphraseFile, "passphrase-file", "", "`FILE` whose first line is the passphrase")
	f.BoolVar(&o.keys.Plaintext, "plaintext", false, "do not encrypt the backup, though it holds all keys of the plane")
	f.BoolVar(&o.localClusters, "local-clusters", false,
		"with the data of local clusters, each of which stands still for a moment meanwhile")
	f.IntVar(&o.keep, "keep", 0, "in a directory: remove older backups, so that so many are left (default: remove none)")
	c.AddCommand(newBackupListCommand(g), newBackupVerifyCommand(g))
	return c
}

func runBackup(c *cobra.Command, g *connect.Globals, p *lifecycle.Plane, to string, o backupOptions) error {
	if err := checkServing(g, p); err != nil {
		return err
	}
	if err := completeKeys(c, &o.keys); err != nil {
		return err
	}
	begin := g.Now()
	dir := ""
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		dir, to = to, filepath.Join(to, backupfile.Name(begin, o.keys))
	}
	if o.keep != 0 && (dir == "" || o.keep < 0) {
		return exit.Errorf(exit.Usage, "--keep is a number of backups in a directory; name the directory")
	}
	m, size, err := writeBackup(c.Context(), p, to, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Wrote %s: %s of the plane in %s, %.1f s.\n", to, describeSize(m.Size()), describeSize(size),
		g.Now().Sub(begin).Seconds())
	if m.LeftOut > 0 {
		fmt.Fprintf(c.OutOrStdout(), "The data of %s is not in it; --local-clusters adds it.\n", describeClusterCount(m.LeftOut))
	}
	if err := printTenantPlanes(c.OutOrStdout(), g, p); err != nil {
		return err
	}
	if o.keep > 0 {
		return backupfile.Prune(dir, o.keep)
	}
	return nil
}

// printTenantPlanes names the planes that a backup of this one leaves out: each has a store and keys of its own.
func printTenantPlanes(w io.Writer, g *connect.Globals, p *lifecycle.Plane) error {
	r, err := p.Inspect()
	if err != nil {
		return err
	}
	for _, t := range r.Status.TenantPlanes {
		its := *g
		its.DataDir = t.DataDir
		if _, err := fmt.Fprintf(w, "The plane of tenant %s is not in it; back it up with: %s\n", t.Tenant,
			its.Hint("backup FILE")); err != nil {
			return err
		}
	}
	return nil
}

// checkServing tells a plane that does not run from one that cannot do this yet.
func checkServing(g *connect.Globals, p *lifecycle.Plane) error {
	r, err := p.Inspect()
	if err == nil && !r.Running {
		return exit.Errorf(exit.NotReady, "no polderd runs on %s; start it with: %s", p.Dir(), g.Hint("up"))
	}
	return err
}

func writeBackup(ctx context.Context, p *lifecycle.Plane, to string, o backupOptions) (archive.Manifest, int64, error) {
	w, err := backupfile.Create(to, o.keys)
	if err != nil {
		return archive.Manifest{}, 0, err
	}
	m, err := backup.Fetch(ctx, p.Dir(), o.localClusters, w)
	if err != nil {
		w.Abort()
		if errors.Is(err, backup.ErrNotServed) {
			err = exit.Errorf(exit.NotReady, "polderd on %s is starting or stopping; try again when it is ready", p.Dir())
		}
		return m, 0, err
	}
	size, err := w.Commit()
	return m, size, err
}

func newBackupListCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "list [DIRECTORY]",
		Short: "List the backups in a directory, by default that of the scheduled ones",
		Args:  cmdline.Args(0, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := backupDirectory(g, args)
			if err != nil {
				return err
			}
			all, err := backupfile.List(dir)
			if err != nil {
				return err
			}
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), append([]backupfile.Info{}, all...))
			}
			return printBackups(c.OutOrStdout(), g, dir, all)
		},
	}
	out.AddFlags(c)
	return c
}

func backupDirectory(g *connect.Globals, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	p, err := g.Plane()
	if err != nil {
		return "", err
	}
	r, err := p.Inspect()
	if err != nil {
		return "", err
	}
	if r.Status.Backup == nil {
		return "", exit.Errorf(exit.Usage,
			"the plane in %s schedules no backups (polderd serve --backup-dir); name a directory", p.Dir())
	}
	return r.Status.Backup.Dir, nil
}

func printBackups(w io.Writer, g *connect.Globals, dir string, all []backupfile.Info) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "There are no backups in %s.\n", dir)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "FILE\tAGE\tSIZE\tENCRYPTED\n")
	for _, b := range all {
		encrypted := "yes"
		if !b.Encrypted {
			encrypted = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", b.Path, output.Age(g.Now(), b.CreatedAt), describeSize(b.Size), encrypted)
	}
	return t.Flush()
}

func newBackupVerifyCommand(_ *connect.Globals) *cobra.Command {
	var u unlockOptions
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a backup is whole and can be opened, without restoring it",
		Args:  cmdline.Args(1, 1, "the file of a backup"),
		RunE: func(c *cobra.Command, args []string) error {
			b, unlock, err := u.open(c, args[0])
			if err != nil {
				return err
			}
			defer b.Close() //nolint:errcheck // read only
			m, err := lifecycle.VerifyBackup(b, unlock)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is whole: %s.\n", args[0], describeBackup(m))
			return err
		},
	}
	u.addFlags(c)
	return c
}

// describeSize is a size in the unit that fits.
func describeSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d kB", n>>10)
}
