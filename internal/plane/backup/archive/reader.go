package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Visitor is told what is in an archive while it is read. What it is told can be believed only after Read has
// returned without an error.
type Visitor struct {
	Header func(Header) error           // optional
	Entry  func(Entry, io.Reader) error // optional; need not read to the end
}

// Read reads a whole archive and checks all of it: that each file is as the manifest has it, that none is missing, and
// that nothing follows. It keeps no file in memory. What is wrong with the archive is an ErrDamaged or an ErrNewer;
// other errors are those of the visitor.
func Read(r io.Reader, v Visitor) (Manifest, error) {
	c := &countingReader{r: r}
	a := &reader{raw: c, tar: tar.NewReader(c), visit: v, seen: map[string]bool{}}
	if err := a.readHeader(); err != nil {
		return Manifest{}, err
	}
	for {
		h, err := a.next()
		if err != nil {
			return Manifest{}, err
		}
		if h.Name == manifestName {
			return a.readManifest(h)
		}
		if err := a.readEntry(h); err != nil {
			return Manifest{}, err
		}
	}
}

type reader struct {
	raw     *countingReader
	tar     *tar.Reader
	visit   Visitor
	header  Header
	entries []Entry
	seen    map[string]bool
}

// next returns the next entry of the archive. There must be one: the manifest is the last.
func (a *reader) next() (*tar.Header, error) {
	h, err := a.tar.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it is cut off", ErrDamaged)
	case err != nil:
		return nil, damaged(err)
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return nil, fmt.Errorf("%w: %q is neither a file nor a directory", ErrDamaged, h.Name)
	}
	for key := range h.PAXRecords {
		// Others can say that a file has holes, of any size, for which there are no bytes in the archive.
		if key != "path" && key != "size" {
			return nil, fmt.Errorf("%w: %q has a property %q that no backup has", ErrDamaged, h.Name, key)
		}
	}
	return h, nil
}

func (a *reader) readHeader() error {
	h, err := a.next()
	if err != nil {
		return err
	}
	if h.Name != headerName {
		return fmt.Errorf("%w: it does not begin as a backup of Polder", ErrDamaged)
	}
	if err := a.decodeJSON(h, maxHeader, &a.header); err != nil {
		return err
	}
	if a.header.Format > Format {
		return fmt.Errorf("%w: its format is %d, this version knows up to %d; use polder %s or newer", ErrNewer,
			a.header.Format, Format, a.header.Polder)
	}
	if a.header.Format < 1 {
		return fmt.Errorf("%w: it has no format", ErrDamaged)
	}
	if a.visit.Header == nil {
		return nil
	}
	return a.visit.Header(a.header)
}

func (a *reader) readEntry(h *tar.Header) error {
	e := Entry{Name: h.Name, Mode: fs.FileMode(h.Mode & 0o777), Size: h.Size}
	if err := checkName(e.Name); err != nil {
		return err
	}
	switch {
	case e.IsDir() != (h.Typeflag == tar.TypeDir), e.IsDir() && e.Size != 0:
		return fmt.Errorf("%w: %q is not what its name says", ErrDamaged, e.Name)
	case a.seen[e.Name]:
		return fmt.Errorf("%w: %q is there twice", ErrDamaged, e.Name)
	case len(a.entries) == maxEntries:
		return fmt.Errorf("%w: it has more than %d files", ErrDamaged, maxEntries)
	}
	a.seen[e.Name] = true
	sum := sha256.New()
	content := &markingReader{r: io.TeeReader(a.tar, sum)}
	if a.visit.Entry != nil {
		err := a.visit.Entry(e, content)
		if content.err != nil {
			return damaged(content.err)
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return damaged(err)
	}
	if !e.IsDir() {
		e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	a.entries = append(a.entries, e)
	return nil
}

// readManifest compares what was read with what was written, and looks for the end.
func (a *reader) readManifest(h *tar.Header) (Manifest, error) {
	var m Manifest
	if err := a.decodeJSON(h, maxManifest, &m); err != nil {
		return m, err
	}
	if m.Header != a.header {
		return m, fmt.Errorf("%w: its header and its manifest differ", ErrDamaged)
	}
	for i, e := range a.entries {
		if i >= len(m.Entries) || m.Entries[i] != e {
			return m, fmt.Errorf("%w: %s is not as its manifest has it", ErrDamaged, e.Name)
		}
	}
	if len(m.Entries) != len(a.entries) {
		return m, fmt.Errorf("%w: %s is missing", ErrDamaged, m.Entries[len(a.entries)].Name)
	}
	if err := checkComplete(m); err != nil {
		return m, err
	}
	return m, a.checkEnd()
}

// checkComplete wants what a plane cannot be started without.
func checkComplete(m Manifest) error {
	for _, name := range []string{MarkerName, SnapshotName, "pki/encryption.yaml", "pki/service-accounts.key"} {
		if _, ok := m.find(name); !ok {
			return fmt.Errorf("%w: it has no %s", ErrDamaged, name)
		}
	}
	if e, _ := m.find(SnapshotName); e.SHA256 != m.Store.SHA256 || m.Store.Revision < 1 {
		return fmt.Errorf("%w: its manifest is not about its store", ErrDamaged)
	}
	return nil
}

// checkEnd wants the two empty blocks that end an archive, and nothing behind them. Reading to the very end also lets
// the layers below check what they have at theirs.
func (a *reader) checkEnd() error {
	const block = 512
	end := (a.raw.n + block - 1) / block * block
	if _, err := a.tar.Next(); !errors.Is(err, io.EOF) || a.raw.n != end+2*block {
		return fmt.Errorf("%w: it does not end with its manifest", ErrDamaged)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(a.raw, 1))
	if err != nil {
		return damaged(err)
	}
	if n > 0 {
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return nil
}

func (a *reader) decodeJSON(h *tar.Header, limit int64, into any) error {
	if h.Typeflag != tar.TypeReg || h.Size > limit {
		return fmt.Errorf("%w: %s is too large", ErrDamaged, h.Name)
	}
	b, err := io.ReadAll(io.LimitReader(a.tar, limit))
	if err != nil {
		return damaged(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %s cannot be read", ErrDamaged, h.Name)
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%w: %s has something behind its end", ErrDamaged, h.Name)
	}
	return nil
}

// damaged wraps what a layer below says, unless that is about a cut, which has a sentence of its own.
func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	if slices.ContainsFunc([]error{ErrDamaged, ErrNewer}, func(e error) bool { return errors.Is(err, e) }) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// countingReader knows how far an archive was read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// markingReader remembers an error of the archive, so that it is not taken for one of who reads a file of it.
type markingReader struct {
	r   io.Reader
	err error
}

func (m *markingReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}
