package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
)

// Read reads a gzip-compressed tar archive. Every error is a sentence about the archive.
func Read(r io.Reader, l Limits) (Tree, error) {
	in := &meteredReader{
		r: r, limit: l.Packed, reason: fmt.Sprintf("the archive is larger than %s", formatBytes(l.Packed)),
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, in.errOr(entryErrorf("", "it is not a gzip-compressed archive: %v", err))
	}
	// A header and the padding of an entry take up to 512 bytes each.
	out := &meteredReader{
		r: z, limit: l.Total + int64(l.Entries)*1024,
		reason: fmt.Sprintf("unpacked, the archive is larger than %s", formatBytes(l.Total)),
	}
	out.check = func(n int64) error {
		if n > 1<<20 && n > l.Ratio*in.n {
			return entryErrorf("", "unpacked, the archive is more than %d times as large; that is no real content", l.Ratio)
		}
		return nil
	}
	t, err := readTar(out, l)
	if err == nil {
		err = checkEnd(out)
	}
	if err != nil {
		return nil, in.errOr(out.errOr(err))
	}
	return t, nil
}

func readTar(r io.Reader, l Limits) (Tree, error) {
	t, seen := Tree{}, newSeenNames()
	var total int64
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, entryErrorf("", "the archive is damaged: %v", err)
		}
		if n >= l.Entries {
			return nil, entryErrorf("", "the archive has more than %d entries", l.Entries)
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue // a comment, as git writes it
		case tar.TypeDir:
			if name := path.Clean(h.Name); name != "." { // "dir/" and "./" are how tar writes them
				if err := seen.add(name, false); err != nil {
					return nil, err
				}
			}
			continue
		case tar.TypeReg:
		default:
			return nil, entryErrorf(h.Name, "is %s; only files and directories are taken", entryTypeName(h.Typeflag))
		}
		name := trimDotSlash(h.Name)
		if err := seen.add(name, true); err != nil {
			return nil, err
		}
		if total += h.Size; h.Size > l.File || total > l.Total {
			return nil, tooLargeError(name, h.Size, l)
		}
		b := make([]byte, h.Size) // small enough; what is not there after all is an error
		if _, err := io.ReadFull(tr, b); err != nil {
			return nil, entryErrorf(name, "cannot be read: %v", err)
		}
		t[name] = b
	}
}

// trimDotSlash takes off the "./" some tools begin every name with.
func trimDotSlash(name string) string {
	if len(name) > 2 && name[:2] == "./" {
		return name[2:]
	}
	return name
}

func tooLargeError(name string, size int64, l Limits) error {
	if size > l.File {
		return entryErrorf(name, "has %s; at most %s are taken", formatBytes(size), formatBytes(l.File))
	}
	return entryErrorf("", "unpacked, the archive is larger than %s", formatBytes(l.Total))
}

func entryTypeName(typeflag byte) string {
	switch typeflag {
	case tar.TypeSymlink:
		return "a symbolic link"
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a pipe"
	case tar.TypeGNUSparse:
		return "a sparse file"
	}
	return fmt.Sprintf("of the unknown type %q", typeflag)
}

// checkEnd refuses what hides behind the end of the tar archive: within the gzip stream only zeros may follow,
// as padding, and what follows the stream itself is no gzip header, which is an error of the reader.
func checkEnd(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return entryErrorf("", "the archive goes on after its end")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return entryErrorf("", "the archive is damaged: %v", err)
		}
	}
}

// meteredReader counts what is read, and stops at the limit.
type meteredReader struct {
	r      io.Reader
	n      int64
	limit  int64
	reason string
	check  func(n int64) error
	err    error
}

func (m *meteredReader) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	if m.n > m.limit {
		m.err = entryErrorf("", "%s", m.reason)
	} else if m.check != nil {
		m.err = m.check(m.n)
	}
	if m.err != nil {
		return 0, m.err
	}
	return n, err
}

// errOr gives the reason why the reader stopped, if it did, and otherwise err: what readers above it report
// then is only a consequence.
func (m *meteredReader) errOr(err error) error {
	if m.err != nil {
		return m.err
	}
	return err
}

func formatBytes(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
