// Package filelock has a lock that belongs to an open file: it ends with the process however that ends, so nobody
// has to clean up after a crash. The file names the process that holds it.
package filelock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// HeldError says who holds the lock.
type HeldError struct {
	Path string
	PID  int // 0 if not known
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Acquire takes the lock at once or fails, with a *HeldError if somebody else has it. Closing the file releases
// the lock.
func Acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if taken, err := lock(f); err != nil || !taken {
		defer f.Close() //nolint:errcheck // nothing was written
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		return nil, &HeldError{Path: path, PID: readPID(f)}
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Holder returns the process that holds the lock, or 0 if none does. It only asks: it never takes the lock, not
// even for a moment, so it cannot make a start fail.
func Holder(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	if is, err := locked(f); err != nil {
		return 0, fmt.Errorf("asking for the holder of %s: %w", f.Name(), err)
	} else if !is {
		return 0, nil
	}
	return waitForPID(f)
}

// waitForPID reads who holds the lock; whoever has just taken it writes that a moment later.
func waitForPID(f *os.File) (int, error) {
	for range 100 {
		if pid := readPID(f); pid != 0 {
			return pid, nil
		}
		<-time.After(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s is locked by a process that does not say which", f.Name())
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

func readPID(f io.ReaderAt) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // a short read is the normal case; what is no number is 0
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}
