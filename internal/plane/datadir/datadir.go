// Package datadir owns the directory in which one plane keeps everything: it belongs to one
// user, is held by one process at a time, and is never opened by a version older than its data.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxSocketPath is the kernel's limit for the path of a unix socket, less its final NUL.
const maxSocketPath = 107

// longestSocket is the longest socket name any component makes in the directory.
const longestSocket = "local/0123456789ab/host.sock"

// Dir is a data directory held by this process.
type Dir struct {
	path string
	lock *os.File
}

// Open creates the directory if need be, checks that it is this user's alone, and takes its lock. Nothing is
// written to a directory that cannot be used. Close releases the lock.
func Open(path string, now Marker) (*Dir, error) {
	abs, err := checkedPath(path)
	if err != nil {
		return nil, err
	}
	if err := Prepare(abs); err != nil {
		return nil, err
	}
	d := &Dir{path: abs}
	if d.lock, err = acquireLock(abs); err != nil {
		return nil, err
	}
	// Only with the lock: the process that holds it may be of another version, and writes its own marker.
	err = checkRestored(abs)
	if err == nil {
		err = checkAndWriteMarker(abs, now)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// checkedPath makes the path absolute, and refuses one that is too long.
func checkedPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", exit.Errorf(exit.DataDir, "data directory %q: %w", path, err)
	}
	if n := len(filepath.Join(abs, longestSocket)); n > maxSocketPath {
		return "", exit.Errorf(exit.DataDir,
			"data directory %s is %d characters too long for the sockets in it; choose a shorter path with --data-dir", abs,
			n-maxSocketPath)
	}
	return abs, nil
}

// Path returns the absolute path of something in the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Close releases the lock. The kernel does the same when the process ends in any way.
func (d *Dir) Close() error { return d.lock.Close() }

// Prepare creates the directory, or checks that the existing one can be used.
func Prepare(path string) error {
	err := createOrCheck(path)
	if err == nil {
		err = CheckSpace(path)
	}
	return exit.With(exit.DataDir, err)
}

func createOrCheck(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("data directory %s cannot be made (%w); choose another with --data-dir or create it for this user",
				path, unwrapPathError(err))
		}
		return nil
	case err != nil:
		return fmt.Errorf("data directory %s cannot be read (%w); choose another with --data-dir", path, unwrapPathError(err))
	case !info.IsDir():
		return fmt.Errorf("data directory %s is a file; choose a directory with --data-dir", path)
	}
	return checkAccess(path, info)
}

func checkAccess(path string, info fs.FileInfo) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("data directory %s cannot be read (%w)", path, err)
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fmt.Errorf("data directory %s belongs to user %d, not to user %d who runs polderd; run as its owner or choose another with --data-dir", path, st.Uid, uid)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fmt.Errorf("data directory %s is open to other users (mode %04o) and will hold keys; run: chmod 700 %s", path,
			info.Mode().Perm(), path)
	}
	if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("data directory %s is not writable (%w); run: chmod 700 %s, or choose another with --data-dir",
			path, err, path)
	}
	return nil
}

// unwrapPathError drops the operation and path that os errors repeat.
func unwrapPathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
