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
	dir, base := filepath.Split(path)
	tmp, err := os.CreateTemp(dir, "."+base+".*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := writeAndSync(tmp, data, perm); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	return syncDir(dir)
}

func writeAndSync(f *os.File, data []byte, perm fs.FileMode) error {
	_, err := f.Write(data)
	return errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
}

// syncDir makes the rename itself durable.
func syncDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
