package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/backup/backupfile"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// RestoreStoreCommand is the command of polderd that makes a store of a snapshot.
const RestoreStoreCommand = "restore-store"

// snapshotFile is the snapshot of the store while it is restored.
const snapshotFile = "snapshot.db"

// RestoreOptions say what to restore.
type RestoreOptions struct {
	Backup *backupfile.Reader
	Unlock backupfile.Unlock
	Binary string // path of polderd
}

// Restore fills the data directory, which must be empty, from a backup. All of the backup is checked before anything
// is in its place; after an error the directory is as it was.
func (p *Plane) Restore(ctx context.Context, o RestoreOptions) (m archive.Manifest, err error) {
	s, err := datadir.Stage(p.dir)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Discard())
		}
	}()
	if m, err = unpack(ctx, s, o); err != nil {
		return m, withBackupCode(err)
	}
	if err := restoreStore(ctx, o.Binary, s, m.Store.Revision); err != nil {
		return m, err
	}
	if err := os.Remove(s.Path(snapshotFile)); err != nil {
		return m, err
	}
	return m, s.Commit()
}

// withBackupCode gives errors that are about the backup their exit codes.
func withBackupCode(err error) error {
	switch {
	case errors.Is(err, archive.ErrNewer):
		return exit.With(exit.NewerData, err)
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, backupfile.ErrWrongKey):
		return exit.With(exit.BadBackup, err)
	}
	return err
}

// VerifyBackup checks a backup without writing anything.
func VerifyBackup(b *backupfile.Reader, u backupfile.Unlock) (archive.Manifest, error) {
	m, err := b.Read(u, archive.Visitor{})
	return m, withBackupCode(err)
}

// unpack writes the files of a backup. They stay in the staging folder whatever their names are.
func unpack(ctx context.Context, s *datadir.Staging, o RestoreOptions) (archive.Manifest, error) {
	root, err := os.OpenRoot(s.Path())
	if err != nil {
		return archive.Manifest{}, err
	}
	defer root.Close() //nolint:errcheck // it has nothing to lose
	return o.Backup.Read(o.Unlock, archive.Visitor{Entry: func(e archive.Entry, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			return root.MkdirAll(strings.TrimSuffix(e.Name, "/"), 0o700)
		}
		name := e.Name
		if name == archive.SnapshotName {
			name = snapshotFile
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.Mode|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err == nil && name != snapshotFile { // that one is gone soon
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	}})
}

// restoreStore has polderd make the store: etcd's code is in that alone.
func restoreStore(ctx context.Context, binary string, s *datadir.Staging, revision int64) error {
	c := exec.CommandContext(ctx, binary, RestoreStoreCommand, "--marker-dir", s.Path(), "--snapshot", s.Path(snapshotFile), //nolint:gosec // polderd beside us
		"--store-dir", s.Path("etcd"), "--min-revision", strconv.FormatInt(revision, 10))
	var out bytes.Buffer
	c.Stderr = &out
	err := c.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for line := range strings.Lines(out.String()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "polderd: "); ok {
			return exit.Errorf(exitCodeOf(c.ProcessState.ExitCode()), "%s", text)
		}
	}
	// The sums are right, so it was broken when it was backed up. etcd's code crashes on some of that.
	return exit.Errorf(exit.BadBackup, "the snapshot of the store is damaged: etcd cannot read it (%w)", err)
}
