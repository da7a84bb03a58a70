package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// tempName is a file's name while it is filled. There is one per machine, at the top of its
// directory, so that whatever a crash leaves is found and removed by the next Write.
const tempName = ".userdata.tmp"

// FileContent returns the content that Write gives the file at p, which is absolute and clean: the
// last entry of that path that is not appended, and all that are appended after it.
func (d Data) FileContent(p string) ([]byte, bool) {
	var parts [][]byte
	found := false
	for _, f := range d.Files {
		if f.Path != p {
			continue
		}
		if !f.Append {
			parts = nil
		}
		parts, found = append(parts, f.Content), true
	}
	return bytes.Join(parts, nil), found
}

// Write puts the files below root, in order, each in one step, with the mode of its last entry.
// Directories that are missing are made for the owner alone. A file that is there already is
// replaced, also by one that is appended: appending counts within d only, as otherwise a second
// Write would append twice. So writing the same data again gives the same tree, and after a
// crash that is the way to be sure of it.
//
// Nothing outside root is touched: links that lead out of it are an error. There must be one
// Write at a time for a root. The notes say, file by file, what was not done as asked.
func (d Data) Write(root *os.Root) (notes []string, err error) {
	last := map[string]int{}
	hasBase := map[string]bool{} // whether there is something to append to
	for i, f := range d.Files {
		last[f.Path] = i
		hasBase[f.Path] = hasBase[f.Path] || !f.Append
	}
	for i, f := range d.Files {
		if last[f.Path] != i {
			continue
		}
		f.Content, _ = d.FileContent(f.Path)
		if err := writeFile(root, f); err != nil {
			return notes, fmt.Errorf("writing %s: %w", shorten(f.Path), err)
		}
		if f.Owner != "" && f.Owner != "root" && f.Owner != "root:root" {
			notes = append(notes, fmt.Sprintf("%s: the owner %s is ignored, files here belong to the user of this process",
				f.Path, shorten(f.Owner)))
		}
		if !hasBase[f.Path] {
			notes = append(notes, fmt.Sprintf("%s: there is nothing to append to here, so the file has only what was appended",
				f.Path))
		}
	}
	return notes, nil
}

// writeFile makes one file. It does not sync directories: a rename lost in a crash is made again by
// the next Write, and until then the file is the old one as a whole.
func writeFile(root *os.Root, f File) error {
	name := strings.TrimPrefix(f.Path, "/")
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if err := root.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := root.OpenFile(tempName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(f.Content)
	err = errors.Join(err, tmp.Chmod(f.Mode.Perm()), tmp.Sync(), tmp.Close())
	if err == nil {
		err = root.Rename(tempName, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tempName))
	}
	return nil
}
