package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// LogFile says where output is kept: at Path, mode 0600, in a directory that exists.
type LogFile struct {
	Path     string
	MaxBytes int64 // beyond this the file is set aside at the next end of a line; 0: DefaultMaxBytes
	Keep     int   // old files kept, of which Path.1 is the newest; 0: 2
}

// DefaultMaxBytes is how large a log becomes.
const DefaultMaxBytes = 10 << 20

// maxLineOverrun is how far beyond MaxBytes a line may end before it is broken.
const maxLineOverrun = 64 << 10

// rotator writes a LogFile. It is not for concurrent use.
type rotator struct {
	LogFile
	file    *os.File // nil: to be opened by the next write
	size    int64
	midLine bool
}

func newRotator(l LogFile) *rotator {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.Keep <= 0 {
		l.Keep = 2
	}
	return &rotator{LogFile: l}
}

// write appends b and returns how many bytes of it were lost. After an error the rest of b is
// lost, and the next write begins with a fresh try.
func (r *rotator) write(b []byte) (lost int) {
	for len(b) > 0 {
		if r.file == nil && r.open() != nil {
			return len(b)
		}
		n := r.lengthForCurrentFile(b)
		written, err := r.file.Write(b[:n])
		r.size += int64(written)
		if written > 0 {
			r.midLine = b[written-1] != '\n'
		}
		b = b[written:]
		if err != nil {
			r.close()
			return len(b)
		}
		if len(b) > 0 && r.rotate() != nil {
			return len(b)
		}
	}
	return 0
}

// lengthForCurrentFile is how much of b belongs into the current file; the rest goes into the next one.
func (r *rotator) lengthForCurrentFile(b []byte) int {
	room := r.MaxBytes - r.size
	if int64(len(b)) <= room {
		return len(b)
	}
	if i := bytes.LastIndexByte(b[:max(room, 0)], '\n'); i >= 0 {
		return i + 1
	}
	if r.size > 0 && !r.midLine {
		return 0
	}
	// A line has begun that does not fit: its end belongs to it, if it is not far.
	reach := b[:min(int64(len(b)), max(room+maxLineOverrun, 0))]
	if i := bytes.IndexByte(reach, '\n'); i >= 0 {
		return i + 1
	}
	return len(reach)
}

func (r *rotator) open() error {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	r.file, r.size = f, info.Size()
	return nil
}

// rotate sets the file aside; the oldest is overwritten. If it cannot, the file stays as full as it is.
func (r *rotator) rotate() error {
	r.close()
	for i := r.Keep; i > 0; i-- {
		if err := os.Rename(r.pathOf(i-1), r.pathOf(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (r *rotator) pathOf(age int) string {
	if age == 0 {
		return r.Path
	}
	return r.Path + "." + strconv.Itoa(age)
}

func (r *rotator) close() {
	if r.file != nil {
		_ = r.file.Close() // what a close could lose, a crash would too
		r.file = nil
	}
}
