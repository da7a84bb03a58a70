package integrity

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/schema"
)

// The file of records: what it is, the revision it was made at, a checksum of each revision up to that one in their
// order, and a checksum of the file.
const (
	recordsMagic  = "PLDRREC1"
	recordsHeader = len(recordsMagic) + 8
	recordSize    = 24
)

// RecordWriter writes records of a store that serves. It is given every revision, in order, up to the one named at
// its creation, all of which must be on disk already.
type RecordWriter struct {
	path     string
	revision int64
	file     *os.File
	out      *bufio.Writer
	sum      hash.Hash
	pairs    pairHash
	count    int
	last     revision
}

// NewRecordWriter begins to write. The file takes the place of the one before when it is complete.
func (s Store) NewRecordWriter(revision int64) (*RecordWriter, error) {
	f, err := os.CreateTemp(s.Dir, ".records.*")
	if err != nil {
		return nil, err
	}
	w := &RecordWriter{path: s.recordsFile(), revision: revision, file: f, sum: sha256.New(), pairs: newPairHash()}
	w.out = bufio.NewWriterSize(io.MultiWriter(f, w.sum), 64<<10)
	_, _ = w.out.WriteString(recordsMagic)                                   // Commit returns the error
	_, _ = w.out.Write(binary.BigEndian.AppendUint64(nil, uint64(revision))) //nolint:gosec // never negative
	return w, nil
}

// Add records a revision. Those above the revision of the file are left out.
func (w *RecordWriter) Add(key, value []byte) error {
	rev, ok := parseRevision(key)
	if !ok {
		return fmt.Errorf("the store has a revision with a key of %d bytes", len(key))
	}
	if rev.main > w.revision {
		return nil
	}
	if w.count > 0 && !w.last.before(rev) {
		return fmt.Errorf("revision %d comes twice or too late", rev.main)
	}
	w.last = rev
	sum := shorten(w.pairs.add(schema.Key.Name(), key, value))
	var b [recordSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(rev.main)) //nolint:gosec // never negative
	binary.BigEndian.PutUint64(b[8:], uint64(rev.sub)) //nolint:gosec // as above
	copy(b[16:], sum[:])
	w.count++
	_, err := w.out.Write(b[:])
	return err
}

// Count is how many revisions were recorded.
func (w *RecordWriter) Count() int { return w.count }

// Commit completes the file and puts it in its place, durably.
func (w *RecordWriter) Commit() error {
	err := w.out.Flush()
	_, sumErr := w.file.Write(w.sum.Sum(nil))
	if err = errors.Join(err, sumErr, w.file.Sync()); err != nil {
		return errors.Join(err, w.Discard())
	}
	if err := errors.Join(w.file.Close(), os.Rename(w.file.Name(), w.path)); err != nil {
		return errors.Join(err, removeIfThere(w.file.Name()))
	}
	return syncDir(filepath.Dir(w.path))
}

// Discard drops what was written.
func (w *RecordWriter) Discard() error {
	return errors.Join(w.file.Close(), removeIfThere(w.file.Name()))
}

// recordReader goes through the records in their order.
type recordReader struct {
	file     *os.File
	revision int64 // what came later is not recorded
	in       *bufio.Reader
	left     int64

	next revision
	sum  shortSum
	more bool // next and sum are set
}

// openRecords opens the file if it is there and as it was written. Without one, the reader is nil.
func openRecords(path string) (*recordReader, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a nil reader is one without records
	}
	if err != nil {
		return nil, err
	}
	r, err := startRecords(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

func startRecords(f *os.File) (*recordReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	body := info.Size() - int64(recordsHeader) - sha256.Size
	if body < 0 || body%recordSize != 0 {
		return nil, fmt.Errorf("it is damaged: it has %d bytes", info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, info.Size()-sha256.Size); err != nil {
		return nil, err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return nil, err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return nil, errors.New("it is damaged: its checksum is wrong")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := &recordReader{file: f, in: bufio.NewReaderSize(f, 64<<10), left: body / recordSize}
	header := make([]byte, recordsHeader)
	if _, err := io.ReadFull(r.in, header); err != nil || string(header[:len(recordsMagic)]) != recordsMagic {
		return nil, errors.New("it is of another version")
	}
	r.revision = int64(binary.BigEndian.Uint64(header[len(recordsMagic):])) //nolint:gosec // as it was written
	return r, r.read()
}

func (r *recordReader) read() error {
	r.more = r.left > 0
	if !r.more {
		return nil
	}
	r.left--
	var b [recordSize]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		return err
	}
	r.next = revision{int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))} //nolint:gosec // as above
	copy(r.sum[:], b[16:])
	return nil
}

// advance goes to the record of a revision, or behind where it would be. It returns the record, if there is one, and
// the highest revision it has passed, 0 if none.
func (r *recordReader) advance(to revision) (have *shortSum, passed int64, err error) {
	for r.more && r.next.before(to) {
		passed = r.next.main
		if err := r.read(); err != nil {
			return nil, passed, err
		}
	}
	if !r.more || r.next != to {
		return nil, passed, nil
	}
	sum := r.sum
	return &sum, passed, r.read()
}

func (r *recordReader) close() {
	if r != nil {
		_ = r.file.Close() // read only
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
