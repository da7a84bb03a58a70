// Package logfile keeps output in files of bounded size.
package logfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// File says where output is kept: at Path, mode 0600, in a directory that exists.
type File struct {
	Path     string
	MaxBytes int64 // beyond this the file is set aside at the next end of a line; 0: DefaultMaxBytes
	Keep     int   // old files kept, of which Path.1 is the newest; 0: 2
}

// DefaultMaxBytes is how large a log becomes.
const DefaultMaxBytes = 10 << 20

// maxLineOverrun is how far beyond MaxBytes a line may end before it is broken.
const maxLineOverrun = 64 << 10

// Open opens the file for appending. One beyond MaxBytes is set aside first.
func (l File) Open() (*os.File, error) {
	w := NewWriter(l)
	if info, err := os.Stat(l.Path); err == nil && info.Size() > w.MaxBytes {
		if err := w.rotate(); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(l.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// Writer writes a File. It is not for concurrent use.
type Writer struct {
	File
	file    *os.File // nil: to be opened by the next write
	size    int64
	midLine bool
}

// NewWriter opens nothing yet.
func NewWriter(l File) *Writer {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.Keep <= 0 {
		l.Keep = 2
	}
	return &Writer{File: l}
}

// Append appends b and returns how many bytes of it were lost. After an error the rest of b is
// lost, and the next write begins with a fresh try.
func (w *Writer) Append(b []byte) (lost int) {
	for len(b) > 0 {
		if w.file == nil && w.open() != nil {
			return len(b)
		}
		n := w.lengthForCurrentFile(b)
		written, err := w.file.Write(b[:n])
		w.size += int64(written)
		if written > 0 {
			w.midLine = b[written-1] != '\n'
		}
		b = b[written:]
		if err != nil {
			w.Close()
			return len(b)
		}
		if len(b) > 0 && w.rotate() != nil {
			return len(b)
		}
	}
	return 0
}

// lengthForCurrentFile is how much of b belongs into the current file; the rest goes into the next one.
func (w *Writer) lengthForCurrentFile(b []byte) int {
	room := w.MaxBytes - w.size
	if int64(len(b)) <= room {
		return len(b)
	}
	if i := bytes.LastIndexByte(b[:max(room, 0)], '\n'); i >= 0 {
		return i + 1
	}
	if w.size > 0 && !w.midLine {
		return 0
	}
	// A line has begun that does not fit: its end belongs to it, if it is not far.
	reach := b[:min(int64(len(b)), max(room+maxLineOverrun, 0))]
	if i := bytes.IndexByte(reach, '\n'); i >= 0 {
		return i + 1
	}
	return len(reach)
}

func (w *Writer) open() error {
	f, err := os.OpenFile(w.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	w.file, w.size = f, info.Size()
	return nil
}

// rotate sets the file aside; the oldest is overwritten. If it cannot, the file stays as full as it is.
func (w *Writer) rotate() error {
	w.Close()
	for i := w.Keep; i > 0; i-- {
		if err := os.Rename(w.pathOf(i-1), w.pathOf(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *Writer) pathOf(age int) string {
	if age == 0 {
		return w.Path
	}
	return w.Path + "." + strconv.Itoa(age)
}

// Close closes the file; a later Append opens it again.
func (w *Writer) Close() {
	if w.file != nil {
		_ = w.file.Close() // what a close could lose, a crash would too
		w.file = nil
	}
}
