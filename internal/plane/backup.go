package plane

import (
	"context"
	"io"

	"github.com/polder-kaas/polder/internal/plane/backup"
	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
)

// newBackup prepares the maker of backups.
func (p *Plane) newBackup(store *etcd.Etcd) *backup.Backup {
	b := backup.New(backup.Config{
		Source:   backup.Source{DataDir: p.dir.Path(), Header: p.backupHeader, Snapshot: snapshotOf(store)},
		Socket:   p.dir.Path(backup.SocketName),
		Schedule: p.cfg.Backups,
		Clock:    p.cfg.Clock,
		Log:      p.cfg.Log,
		Report:   p.reporter.setBackup,
	})
	p.metrics.MustRegister(backupMetrics{b.Status})
	return b
}

func (p *Plane) backupHeader() archive.Header {
	v := buildinfo.Get()
	return archive.Header{
		CreatedAt: p.cfg.Clock.Now(), Polder: v.Version, Kubernetes: v.Kubernetes, Etcd: v.Etcd, Address: p.serverURL(),
		Stacks: p.cfg.Stacks.Source,
	}
}

// snapshotOf takes snapshots of the store.
func snapshotOf(store *etcd.Etcd) func(context.Context) (*backup.Snapshot, error) {
	return func(ctx context.Context) (*backup.Snapshot, error) {
		s, err := store.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		write := func(w io.Writer) error {
			_, err := s.WriteTo(w)
			return err
		}
		return &backup.Snapshot{Revision: s.Revision, Size: s.Size, Write: write, Close: s.Close}, nil
	}
}
