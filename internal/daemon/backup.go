package daemon

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/plane/backup"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// addBackupFlags adds the flags of scheduled backups.
func addBackupFlags(f *pflag.FlagSet, s *backup.Schedule) {
	f.StringVar(&s.Dir, "backup-dir", "",
		"`DIRECTORY` for backups that the plane makes by itself; of this plane alone, and best on another disk (default: none are made)")
	f.DurationVar(&s.Every, "backup-every", backup.DefaultEvery, "how often")
	f.IntVar(&s.Keep, "backup-keep", backup.DefaultKeep, "how many are kept")
	f.StringSliceVar(&s.Keys.Recipients, "backup-recipient", nil,
		"public age `KEY` (age1…) to which backups are encrypted; may be repeated")
	f.StringVar(&s.Keys.RecipientsFile, "backup-recipients-file", "", "`FILE` with such keys, one on each line")
	f.StringVar(&s.Keys.PassphraseFile, "backup-passphrase-file", "",
		"`FILE` whose first line is a passphrase with which backups are encrypted; a key is better, since its private half need not be here")
	f.BoolVar(&s.Keys.Plaintext, "backup-plaintext", false,
		"do not encrypt backups, though they hold all keys of the plane")
	f.BoolVar(&s.LocalClusters, "backup-local-clusters", false,
		"with the data of local clusters, each of which stands still for a moment meanwhile")
}

// newRestoreStoreCommand makes a store of a snapshot. polder restore calls it: polder has no etcd in it.
func newRestoreStoreCommand() *cobra.Command {
	var cfg etcd.RestoreConfig
	var marker string
	c := &cobra.Command{
		Use:    lifecycle.RestoreStoreCommand,
		Short:  "Make a store of a snapshot; called by polder restore",
		Hidden: true,
		Args:   cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := buildinfo.Get()
			now := datadir.Marker{Format: datadir.Format, Polder: v.Version, Kubernetes: v.Kubernetes, Etcd: v.Etcd}
			if err := datadir.CheckMarker(marker, now); err != nil {
				return err
			}
			cfg.Log = zap.NewNop()
			revision, err := etcd.Restore(cfg)
			if err != nil {
				return exit.With(exit.BadBackup, err)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), revision)
			return err
		},
	}
	c.Flags().StringVar(&marker, "marker-dir", "", "`DIRECTORY` with the file that says which version wrote the snapshot")
	c.Flags().StringVar(&cfg.Snapshot, "snapshot", "", "`FILE`")
	c.Flags().StringVar(&cfg.Dir, "store-dir", "", "new `DIRECTORY`")
	c.Flags().Int64Var(&cfg.Revision, "min-revision", 0, "that the snapshot must have")
	return c
}
