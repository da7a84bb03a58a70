package plane

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// NewRestoreCommand is polder restore: it makes the data directory of a plane from a backup.
func NewRestoreCommand(g *connect.Globals) *cobra.Command {
	var u unlockOptions
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory from a backup",
		Long: `restore fills the data directory, which must be empty or not there, from a backup, on this machine or another.
All of the backup is checked before anything is in its place, and after an error the directory is as it was.
polder up, or polderd serve, then starts the plane. Clients that watched the old one list anew.`,
		Args: cmdline.Args(1, 1, "the file of a backup"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			o := lifecycle.RestoreOptions{}
			if o.Binary, err = lifecycle.FindPolderd(); err != nil {
				return err
			}
			if o.Backup, o.Unlock, err = u.open(c, args[0]); err != nil {
				return err
			}
			defer o.Backup.Close() //nolint:errcheck // read only
			m, err := p.Restore(c.Context(), o)
			if err != nil {
				return err
			}
			return printRestored(c, g, p, m)
		},
	}
	u.addFlags(c)
	return c
}

// printRestored says what there is now and how to start it. Settings are not restored: they may not fit this machine.
func printRestored(c *cobra.Command, g *connect.Globals, p *lifecycle.Plane, m archive.Manifest) error {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "Restored to %s: %s.\n", p.Dir(), describeBackup(m))
	start := "up"
	if address := strings.TrimPrefix(m.Address, "https://"); address != "" && address != defaultAddress {
		start += " --listen " + address
	}
	if m.Stacks != "" {
		start += " --stack-source " + m.Stacks
	}
	if of := p.Parent(); of != "" {
		fmt.Fprintf(w, "It is that of a tenant: the plane in %s starts it by itself.\n", of)
	} else {
		fmt.Fprintf(w, "Start it where it was with: %s\n", g.Hint(start))
	}
	if m.LeftOut == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "Attention: the data of %s was not in the backup. The plane knows their machines, will not find them, and makes them anew, and empty.\n",
		describeClusterCount(m.LeftOut))
	return err
}

// defaultAddress is where polderd serves unless it is told otherwise.
const defaultAddress = "127.0.0.1:7443"

// describeBackup says what a backup is of.
func describeBackup(m archive.Manifest) string {
	return fmt.Sprintf("a backup of %s by polder %s (Kubernetes %s), %s, store at revision %d",
		m.CreatedAt.UTC().Format(time.DateTime+" MST"), m.Polder, m.Kubernetes, describeSize(m.Size()), m.Store.Revision)
}
