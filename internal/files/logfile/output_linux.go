package logfile

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// RotateOutput sets the file aside if it is beyond MaxBytes, and makes those of the descriptors that led to it lead to
// a new one. They stay open all the time, so whatever writes to them, a crash too, loses nothing. Descriptors of other
// files, a terminal for example, are left alone.
func (l File) RotateOutput(descriptors ...*os.File) error {
	info, err := os.Stat(l.Path)
	if err != nil || info.Size() <= NewWriter(l).MaxBytes {
		return nil //nolint:nilerr // a file that is gone takes no room
	}
	var ours []*os.File
	for _, d := range descriptors {
		if have, err := d.Stat(); err == nil && os.SameFile(have, info) {
			ours = append(ours, d)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	next, err := l.Open()
	if err != nil {
		return err
	}
	defer next.Close() //nolint:errcheck // the descriptors are of their own
	for _, d := range ours {
		if err := replace(d, next); err != nil {
			return fmt.Errorf("beginning a new %s: %w", l.Path, err)
		}
	}
	return nil
}

// replace makes a descriptor lead to another file, in one step. Only standard output and error are for children.
func replace(d, with *os.File) error {
	c, err := d.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := c.Control(func(fd uintptr) {
		flags := unix.O_CLOEXEC
		if fd <= uintptr(syscall.Stderr) {
			flags = 0
		}
		failed = unix.Dup3(int(with.Fd()), int(fd), flags)
	}); err != nil {
		return err
	}
	return failed
}
