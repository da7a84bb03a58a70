// Package atomicfile writes files that are either wholly there or not at all.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces path by data in one step that survives a crash: readers see the old
// content or the new, never a part, and the file never has wider permissions than perm.
func Write(path string, data []byte, perm fs.FileMode) error {
	if err := replace(path, data, perm, (*os.File).Sync); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// WriteUnsynced is Write for a disk that syncs nothing any more: readers never see a part, but after a crash of the
// computer they may see anything.
func WriteUnsynced(path string, data []byte, perm fs.FileMode) error {
	return replace(path, data, perm, func(*os.File) error { return nil })
}

func replace(path string, data []byte, perm fs.FileMode, sync func(*os.File) error) error {
	dir, base := filepath.Split(path)
	tmp, err := os.CreateTemp(dir, "."+base+".*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := writeAndClose(tmp, data, perm, sync); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

func writeAndClose(f *os.File, data []byte, perm fs.FileMode, sync func(*os.File) error) error {
	_, err := f.Write(data)
	return errors.Join(err, f.Chmod(perm), sync(f), f.Close())
}

// syncDir makes the rename itself durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
