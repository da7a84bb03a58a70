package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/exit"
)

const lockName = "polderd.lock"

// acquire takes the lock and writes this process's id into it. The lock belongs to the open
// file, so it ends with the process however that ends, and nobody has to clean up after a crash.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, exit.Errorf(exit.DataDir, "data directory %s is not writable (%w); choose another with --data-dir", filepath.Dir(path), cause(err))
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l); err != nil {
		defer f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, exit.Errorf(exit.InUse, "data directory %s is already in use by polderd%s; stop that one with: polder down --data-dir %s", filepath.Dir(path), processSuffix(f), filepath.Dir(path))
		}
		return nil, exit.Errorf(exit.DataDir, "data directory %s cannot be locked: %w", filepath.Dir(path), err)
	}
	if err := writePID(f); err != nil {
		return nil, exit.With(exit.DataDir, errors.Join(err, f.Close()))
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("writing %s: %w", f.Name(), err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("writing %s: %w", f.Name(), err)
	}
	return nil
}

func processSuffix(f *os.File) string {
	if pid := readPID(f); pid > 0 {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

func readPID(f io.ReaderAt) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // a short read is the normal case; what is no number is 0
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// Holder is the process that holds the directory, or 0 if none does. It only asks: it never
// takes the lock, not even for a moment, so it cannot get in the way of a start.
func Holder(path string) (int, error) {
	f, err := os.Open(filepath.Join(path, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, exit.Errorf(exit.DataDir, "data directory %s cannot be read (%w)", path, cause(err))
	}
	defer f.Close() //nolint:errcheck // read only
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return 0, fmt.Errorf("asking for the holder of %s: %w", f.Name(), err)
	}
	if l.Type == unix.F_UNLCK {
		return 0, nil
	}
	return readPID(f), nil
}
