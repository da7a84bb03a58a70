package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// ReadDir reads a directory within the limits. Links are refused wherever they lead: a stack must
// be the same on every computer. skip says which paths to leave out; nil leaves out none.
func ReadDir(dir string, l Limits, skip func(name string, isDir bool) bool) (Tree, error) {
	root, err := os.OpenRoot(dir) // not even a link that is swapped in meanwhile leads outside
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	t, seen := Tree{}, newSeenNames()
	var total int64
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if skip != nil && skip(name, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entries++; entries > l.Entries {
			return entryErrorf("", "the directory has more than %d entries", l.Entries)
		}
		if err := seen.add(name, !d.IsDir()); err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return entryErrorf(name, "is %s; only files and directories are taken", fileModeName(d.Type()))
		}
		b, err := readFile(root, name, l.File)
		if err != nil {
			return err
		}
		if total += int64(len(b)); total > l.Total {
			return entryErrorf("", "the directory holds more than %s", formatBytes(l.Total))
		}
		t[name] = b
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	return t, nil
}

func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, entryErrorf(name, "has more than %s", formatBytes(most))
	}
	return b, nil
}

func fileModeName(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "no regular file"
}

// WriteDir writes a tree as a new directory: all of it or, if something fails, nothing. It fails if
// there is something at dir that is not an empty directory.
func WriteDir(dir string, t Tree) (err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; remove it or choose another place", dir)
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	// It lies beside dir, so that the rename is within one file system.
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := writeInto(tmp, t); err != nil {
		return err
	}
	// MkdirTemp makes directories for their owner only.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one is in the way
		return err
	}
	return os.Rename(tmp, dir)
}

func writeInto(dir string, t Tree) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // files are closed by WriteFile
	seen := newSeenNames()
	for _, name := range t.Names() {
		if err := seen.add(name, true); err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, t[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
