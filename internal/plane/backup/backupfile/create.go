// Package backupfile is a backup as a file: an archive, compressed with zstd and encrypted with age. The name of the
// file says so (.tar.zst.age), and the tools of these names can open it without Polder.
package backupfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// partPrefix begins the names of files that are not complete yet.
const partPrefix = ".polder-backup-"

// bufferSize is how much is handed to the file at once.
const bufferSize = 1 << 20

// Writer writes a backup. It appears under its name when it is complete, and not at all if it never is.
type Writer struct {
	path  string
	file  *os.File
	out   io.Writer
	stack []io.Closer // the layers, the outermost first
}

// Create begins a backup. Either Commit or Abort must be called.
func Create(path string, k Keys) (*Writer, error) {
	recipients, err := k.recipients()
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s exists already; a backup replaces no file, so choose another name or a directory", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), partPrefix+"*") // made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, unwrapPathError(err))
	}
	w := &Writer{path: path, file: f}
	if err := w.addLayers(recipients); err != nil {
		w.Abort()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return w, nil
}

func (w *Writer) addLayers(recipients []age.Recipient) error {
	b := bufio.NewWriterSize(w.file, bufferSize)
	w.out, w.stack = b, []io.Closer{flusher{b}}
	if len(recipients) > 0 {
		e, err := age.Encrypt(w.out, recipients...)
		if err != nil {
			return err
		}
		w.out, w.stack = e, append([]io.Closer{e}, w.stack...)
	}
	// One goroutine: the rest of the machine is for who uses the plane meanwhile.
	z, err := zstd.NewWriter(w.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	w.out, w.stack = z, append([]io.Closer{z}, w.stack...)
	return nil
}

// Write writes a part of the archive.
func (w *Writer) Write(p []byte) (int, error) { return w.out.Write(p) }

// Commit puts the complete backup in its place and returns its size.
func (w *Writer) Commit() (int64, error) {
	size, err := w.finish()
	if err != nil {
		w.Abort()
		return 0, fmt.Errorf("writing %s: %w", w.path, err)
	}
	return size, nil
}

func (w *Writer) finish() (int64, error) {
	for _, c := range w.stack {
		if err := c.Close(); err != nil {
			return 0, err
		}
	}
	if err := w.file.Sync(); err != nil {
		return 0, err
	}
	info, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	// A link, since a rename would replace a file that has appeared meanwhile.
	if err := os.Link(w.file.Name(), w.path); err != nil {
		return 0, unwrapPathError(err)
	}
	return info.Size(), errors.Join(os.Remove(w.file.Name()), w.file.Close(), syncDir(filepath.Dir(w.path)))
}

// Abort leaves nothing behind.
func (w *Writer) Abort() {
	_ = w.file.Close() // it is thrown away
	_ = os.Remove(w.file.Name())
}

// flusher makes a buffer one of the layers.
type flusher struct{ b *bufio.Writer }

func (f flusher) Close() error { return f.b.Flush() }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// unwrapPathError drops the operation and the names that os errors repeat.
func unwrapPathError(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
