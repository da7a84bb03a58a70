package archive

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"time"
)

// epoch is the time of every file: the oldest that all tools show as a date.
var epoch = time.Unix(0, 0).UTC()

// Write packs a tree as a gzip-compressed tar archive. The same tree gives the same bytes: files are
// sorted, have no owner, and all have the same time.
func Write(w io.Writer, t Tree) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(z)
	seen := newSeenNames()
	for _, name := range t.Names() {
		if err := seen.add(name, true); err != nil {
			return err
		}
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(t[name])), ModTime: epoch, Format: tar.FormatPAX,
		}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := tw.Write(t[name]); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return z.Close()
}
