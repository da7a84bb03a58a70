package rewrite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/polder-kaas/polder/stack/allowlist"
)

// maxFile bounds what is read of a file that is checked.
const maxFile = 2 << 20

// machineFiles are the files below a machine's root; a link that leads out of it is an error.
type machineFiles struct{ root *os.Root }

var _ allowlist.Files = machineFiles{}

// openFiles opens the root of a machine. One that is not there has no files.
func openFiles(dir string) (machineFiles, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return machineFiles{}, nil
	}
	return machineFiles{root}, err
}

func (f machineFiles) close() {
	if f.root != nil {
		_ = f.root.Close() // nothing was written
	}
}

// relative is the path as the root knows it.
func relative(path string) string {
	if path = strings.TrimPrefix(path, "/"); path == "" {
		return "."
	}
	return path
}

// Stat follows links as far as they stay below the root.
func (f machineFiles) Stat(path string) error {
	if f.root == nil {
		return fs.ErrNotExist
	}
	_, err := f.root.Stat(relative(path))
	return err
}

// ReadFile reads a file of a size that can be checked.
func (f machineFiles) ReadFile(path string) ([]byte, error) {
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	in, err := f.root.Open(relative(path))
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no ordinary file", path), err)
	}
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return b, err
}
