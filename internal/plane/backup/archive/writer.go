package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Writer writes an archive. After an error it must not be used any more: the archive has no manifest then, and is
// refused by all who read it.
type Writer struct {
	tar      *tar.Writer
	manifest Manifest
	seen     map[string]bool
}

// NewWriter begins an archive.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format, h.CreatedAt = Format, h.CreatedAt.UTC()
	a := &Writer{tar: tar.NewWriter(w), manifest: Manifest{Header: h}, seen: map[string]bool{}}
	return a, a.addJSON(headerName, h)
}

// AddDir adds a directory. The name ends with a slash.
func (a *Writer) AddDir(name string, mode fs.FileMode) error {
	e := Entry{Name: name, Mode: mode.Perm()}
	if err := a.begin(e); err != nil {
		return err
	}
	a.manifest.Entries = append(a.manifest.Entries, e)
	return nil
}

// AddFile adds a file of the given size, which content must write.
func (a *Writer) AddFile(name string, mode fs.FileMode, size int64, content func(io.Writer) error) error {
	e := Entry{Name: name, Mode: mode.Perm(), Size: size}
	if err := a.begin(e); err != nil {
		return err
	}
	h := sha256.New()
	if err := content(io.MultiWriter(a.tar, h)); err != nil {
		return fmt.Errorf("backing up %s: %w", name, err)
	}
	if err := a.tar.Flush(); err != nil { // an error if content wrote less than size
		return fmt.Errorf("backing up %s: %w", name, err)
	}
	e.SHA256 = hex.EncodeToString(h.Sum(nil))
	a.manifest.Entries = append(a.manifest.Entries, e)
	return nil
}

func (a *Writer) begin(e Entry) error {
	if err := checkName(e.Name); err != nil {
		return err
	}
	if a.seen[e.Name] {
		return fmt.Errorf("backing up %s: it is there twice", e.Name)
	}
	a.seen[e.Name] = true
	return a.writeHeader(e)
}

func (a *Writer) writeHeader(e Entry) error {
	h := &tar.Header{
		Name: e.Name, Mode: int64(e.Mode), Size: e.Size, Typeflag: tar.TypeReg,
		ModTime: a.manifest.CreatedAt.Truncate(time.Second),
	}
	if e.IsDir() {
		h.Typeflag = tar.TypeDir
	}
	if err := a.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("backing up %s: %w", e.Name, err)
	}
	return nil
}

// Close ends the archive with its manifest, which it returns. revision is that of the store.
func (a *Writer) Close(revision int64) (Manifest, error) {
	e, _ := a.manifest.find(SnapshotName)
	a.manifest.Store = Store{Revision: revision, SHA256: e.SHA256}
	if err := checkComplete(a.manifest); err != nil {
		return a.manifest, err
	}
	if err := a.addJSON(manifestName, a.manifest); err != nil {
		return a.manifest, err
	}
	return a.manifest, a.tar.Close()
}

func (a *Writer) addJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := a.writeHeader(Entry{Name: name, Mode: 0o600, Size: int64(len(b))}); err != nil {
		return err
	}
	_, err = a.tar.Write(b)
	return err
}
