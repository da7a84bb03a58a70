// Package backup makes backups of a running plane: it hands them to the polder command through a socket in the data
// directory, and writes them by itself on a schedule.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
)

// Snapshot is the content of the store at one moment.
type Snapshot struct {
	Revision int64 // at least this one is in it
	Size     int64 // of what Write writes
	Write    func(io.Writer) error
	Close    func() error
}

// Source is what backups are made of.
type Source struct {
	DataDir  string
	Header   func() archive.Header // all of it but LocalClusters and LeftOut
	Snapshot func(context.Context) (*Snapshot, error)
}

// Write writes an archive of the plane while it serves. All that the plane acknowledged before is in it. Of local
// clusters it has all files, if wanted, or nothing.
func (s Source) Write(ctx context.Context, w io.Writer, localClusters bool) (archive.Manifest, error) {
	known, err := s.launcher().Clusters()
	if err != nil {
		return archive.Manifest{}, err
	}
	h := s.Header()
	if h.LocalClusters = localClusters; !localClusters {
		h.LeftOut = len(known)
	}
	a, err := archive.NewWriter(contextWriter{ctx, w}, h)
	if err != nil {
		return archive.Manifest{}, err
	}
	if err := s.addFile(a, archive.MarkerName); err != nil {
		return archive.Manifest{}, err
	}
	if err := s.addTree(a, s.DataDir, "pki"); err != nil {
		return archive.Manifest{}, err
	}
	revision, err := s.addSnapshot(ctx, a)
	if err != nil {
		return archive.Manifest{}, err
	}
	if err := s.addTree(a, s.DataDir, "releases"); err != nil {
		return archive.Manifest{}, err
	}
	if localClusters {
		if err := s.addLocalClusters(ctx, a, known); err != nil {
			return archive.Manifest{}, err
		}
	}
	return a.Close(revision)
}

func (s Source) addSnapshot(ctx context.Context, a *archive.Writer) (revision int64, err error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return 0, fmt.Errorf("backing up the store: %w", err)
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return snap.Revision, a.AddFile(archive.SnapshotName, 0o600, snap.Size, snap.Write)
}

func (s Source) addFile(a *archive.Writer, name string) error {
	f, err := os.Open(filepath.Join(s.DataDir, name))
	if err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	return addOpenFile(a, name, f)
}

// addTree adds all files below a folder of root. What is removed meanwhile, and a folder that is not there, is left
// out. There are no links in a data directory; a backup that left one out would not be whole.
func (s Source) addTree(a *archive.Writer, root, folder string) error {
	err := filepath.WalkDir(filepath.Join(root, folder), func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return addPath(a, p, path.Clean(filepath.ToSlash(rel)), e)
	})
	if err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	return nil
}

func addPath(a *archive.Writer, file, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(e.Name(), ".") && strings.HasPrefix(name, "pki/"):
		return nil // a certificate that is being renewed
	case e.IsDir():
		return a.AddDir(name+"/", info.Mode())
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory", file)
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	return addOpenFile(a, name, f)
}

// addOpenFile adds a file as it was when it was opened: files are replaced, not changed.
func addOpenFile(a *archive.Writer, name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.AddFile(name, info.Mode(), info.Size(), func(w io.Writer) error {
		_, err := io.CopyN(w, f, info.Size())
		return err
	})
}

// contextWriter ends a backup with its context.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}
