package machine

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxRotatedParts is how many old parts of a log are looked for at most.
const maxRotatedParts = 9

// partPath is where the part lies that was set aside so many times.
func (t logTail) partPath(age int) string {
	if age == 0 {
		return t.path
	}
	return t.path + "." + strconv.Itoa(age)
}

// openAtFirstLine opens the part that holds the first line wanted, at that line.
func (t logTail) openAtFirstLine() (*os.File, error) {
	var oldest *os.File
	missing := t.lines
	for age := 0; age <= maxRotatedParts && (missing != 0 || oldest == nil); age++ {
		f, err := os.Open(t.partPath(age))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a new part begins with the first line in it
		}
		if oldest != nil {
			_ = oldest.Close() // read only
		}
		if err != nil {
			return nil, err
		}
		if missing, err = seekBack(f, missing); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		oldest = f
	}
	if oldest == nil {
		return nil, fs.ErrNotExist
	}
	return oldest, nil
}

// seekBack goes to where the last n lines begin. missing is how many more an older part must have.
func seekBack(f *os.File, n int) (missing int, err error) {
	if n == allLines {
		return n, nil
	}
	info, err := f.Stat()
	if err != nil {
		return n, err
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return n, err
	}
	at := len(b)
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(b[:at-1], '\n') + 1
	}
	_, err = f.Seek(int64(at), io.SeekStart)
	return n, err
}

// openNextPart opens the part that follows f. It is nil while f is the last, or what follows has not begun.
func (t logTail) openNextPart(f *os.File) (*os.File, error) {
	was, err := f.Stat()
	if err != nil {
		return nil, err
	}
	oldest := -1
	for age := 0; age <= maxRotatedParts; age++ {
		is, err := os.Stat(t.partPath(age))
		switch {
		case err != nil:
			continue
		case os.SameFile(is, was) && age == 0:
			return nil, nil
		case os.SameFile(is, was):
			return t.openSuccessor(f, was, age)
		}
		oldest = age
	}
	if oldest >= 0 {
		return os.Open(t.partPath(oldest)) // f was dropped as too old
	}
	if _, err := os.Stat(filepath.Dir(t.path)); errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.Failure, "the log is gone, because the machine was removed")
	}
	return nil, nil
}

// openSuccessor opens the part after f, which is at the given age unless parts are set aside right now.
func (t logTail) openSuccessor(f *os.File, was fs.FileInfo, age int) (*os.File, error) {
	next, err := os.Open(t.partPath(age - 1))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The oldest part is moved first: while f is where it was, so was the next.
	if is, err := os.Stat(t.partPath(age)); err != nil || !os.SameFile(is, was) {
		_ = next.Close() // read only
		return t.openNextPart(f)
	}
	return next, nil
}
