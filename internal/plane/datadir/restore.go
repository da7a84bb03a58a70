package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// stagingName is a folder in the directory for what a restore has not yet put in its place. It is there and not beside
// the directory, which may be a file system of its own, or in a place where this user must not write.
const stagingName = ".restore"

// ignoredNames may be in a directory that counts as empty: what a file system of its own has, and a lock that nobody
// holds.
var ignoredNames = []string{"lost+found", lockName}

// Staging is an empty data directory that is being filled. Its lock keeps polderd away.
type Staging struct {
	dir     *Dir
	created bool // we made the directory
}

// Stage takes an empty directory, which it creates if need be, for a restore. Either Commit or Discard must be called.
func Stage(path string) (*Staging, error) {
	abs, err := checkedPath(path)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(abs)
	s := &Staging{created: errors.Is(err, fs.ErrNotExist)}
	if !s.created {
		if err := checkEmpty(abs); err != nil {
			return nil, err
		}
	}
	if err := Prepare(abs); err != nil {
		return nil, err
	}
	lock, err := acquireLock(abs)
	if err != nil {
		return nil, err
	}
	s.dir = &Dir{path: abs, lock: lock}
	if err := os.Mkdir(s.Path(), 0o700); err != nil {
		return nil, errors.Join(exit.With(exit.DataDir, err), s.Discard())
	}
	return s, nil
}

// checkEmpty refuses a directory in which there is something. A plane that runs there is the better reason.
func checkEmpty(abs string) error {
	pid, err := Holder(abs)
	if err != nil {
		return err
	}
	if pid != 0 {
		return exit.Errorf(exit.InUse,
			"data directory %s is in use by polderd (process %d); a backup is restored into an empty directory only", abs, pid)
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return exit.Errorf(exit.DataDir, "data directory %s cannot be read (%w)", abs, unwrapPathError(err))
	}
	for _, e := range entries {
		if !slices.Contains(ignoredNames, e.Name()) {
			return exit.Errorf(exit.DataDir,
				"data directory %s is not empty; a backup is restored into an empty directory only: move it away, or choose another with --data-dir", abs)
		}
	}
	return nil
}

// Path returns the path of something that is not yet in its place.
func (s *Staging) Path(elem ...string) string {
	return s.dir.Path(append([]string{stagingName}, elem...)...)
}

// Commit puts everything in its place. Should it be interrupted, Open refuses the directory.
func (s *Staging) Commit() error {
	entries, err := os.ReadDir(s.Path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(s.Path(e.Name()), s.dir.Path(e.Name())); err != nil {
			return err
		}
	}
	if err := syncDir(s.dir.path); err != nil {
		return err
	}
	return errors.Join(os.Remove(s.Path()), syncDir(s.dir.path), s.dir.Close())
}

// Discard leaves the directory as it was.
func (s *Staging) Discard() error {
	err := errors.Join(os.RemoveAll(s.Path()), os.Remove(s.dir.Path(lockName)), s.dir.Close())
	if s.created {
		err = errors.Join(err, os.Remove(s.dir.path))
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkRestored refuses a directory into which a restore has put only a part.
func checkRestored(abs string) error {
	if _, err := os.Lstat(filepath.Join(abs, stagingName)); err == nil {
		return exit.Errorf(exit.DataDir,
			"a restore into data directory %s was interrupted; empty the directory and restore the backup again", abs)
	}
	return nil
}

// CheckMarker refuses data of a version newer than now, and data that does not say of which version it is.
func CheckMarker(dir string, now Marker) error {
	old, err := readMarker(filepath.Join(dir, markerName))
	if err == nil && old.Format < 1 {
		err = fmt.Errorf("%s has no format", filepath.Join(dir, markerName))
	}
	if err != nil {
		return exit.With(exit.DataDir, err)
	}
	if err := old.checkNotNewerThan(now); err != nil {
		return exit.Errorf(exit.NewerData, "the data was written by polder %s: %w; use that version or a newer one", old.Polder,
			err)
	}
	return nil
}
