package filelock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the lock of an open file, and says whether it could. It is an open file description lock: a lock of
// the process would be lost as soon as any descriptor of the file is closed.
func lock(f *os.File) (taken bool, err error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// locked says whether another open file has the lock.
func locked(f *os.File) (bool, error) {
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}
