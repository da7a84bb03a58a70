// Package archive reads all files that come from outside: packed archives and directories are read
// into memory within limits, and nothing that could point elsewhere is taken.
// What it writes is the same, byte for byte, for the same content.
package archive

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/polder-kaas/polder/stack/text"
)

// Tree is files by their path: relative, clean, with slashes.
type Tree map[string][]byte

// Names are the paths of all files, sorted.
func (t Tree) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Sub is what lies below a directory, by the path from there.
func (t Tree) Sub(dir string) Tree {
	out := Tree{}
	for name, b := range t {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[rest] = b
		}
	}
	return out
}

// Dirs are the directories at the top, sorted.
func (t Tree) Dirs() []string {
	seen := map[string]bool{}
	for name := range t {
		if dir, _, ok := strings.Cut(name, "/"); ok {
			seen[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Size is how many bytes all files have.
func (t Tree) Size() (n int64) {
	for _, b := range t {
		n += int64(len(b))
	}
	return n
}

// Limits bound what is read. Zero lets nothing in; it does not mean that there is no limit.
type Limits struct {
	Packed  int64 // bytes that come in
	Total   int64 // bytes of all files together
	File    int64 // bytes of one file
	Entries int   // files, directories and whatever else is listed
	Ratio   int64 // unpacked to packed bytes, beyond the first megabyte
}

// DefaultLimits are far above every real stack.
var DefaultLimits = Limits{Packed: 32 << 20, Total: 128 << 20, File: 5 << 20, Entries: 10_000, Ratio: 200}

const (
	maxName  = 512
	maxDepth = 32
)

// Error says which entry of what was read cannot be taken, and why.
type Error struct {
	Entry  string // empty if it is about the whole
	Reason string
}

func (e *Error) Error() string {
	if e.Entry == "" {
		return e.Reason
	}
	return fmt.Sprintf("entry %q %s", truncate(e.Entry), e.Reason)
}

// truncate bounds how much of an entry's name an error shows.
func truncate(name string) string { return text.Truncate(name, 80) }

func entryErrorf(entry, format string, args ...any) error {
	return &Error{Entry: entry, Reason: fmt.Sprintf(format, args...)}
}

// checkName takes a path only if it means the same everywhere, and never something outside.
func checkName(name string) error {
	switch {
	case name == "":
		return entryErrorf(name, "an entry has no name")
	case len(name) > maxName:
		return entryErrorf(name, "has a name of %d bytes; at most %d are taken", len(name), maxName)
	case !utf8.ValidString(name):
		return entryErrorf(strings.ToValidUTF8(name, "?"), "has a name that is not UTF-8")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\\' || r == ':' }):
		return entryErrorf(name, "has a character in its name that not every system takes for one of a name")
	case strings.HasPrefix(name, "/"):
		return entryErrorf(name, "has an absolute path")
	case path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return entryErrorf(name, "has a path that is not clean, or leads outside")
	case strings.Count(name, "/") >= maxDepth:
		return entryErrorf(name, "lies more than %d directories deep", maxDepth)
	}
	return nil
}

// seenNames remembers paths, to refuse entries that are one file on systems without upper and lower case.
type seenNames struct {
	spelling map[string]string // by lower-case path: as it was first seen
	files    map[string]bool
}

func newSeenNames() *seenNames {
	return &seenNames{spelling: map[string]string{}, files: map[string]bool{}}
}

// add takes in a file, or a directory, with the directories above it.
func (n *seenNames) add(name string, file bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := n.addPath(name, dir, false); err != nil {
			return err
		}
	}
	if file && n.files[name] {
		return entryErrorf(name, "is there twice")
	}
	return n.addPath(name, name, file)
}

func (n *seenNames) addPath(entry, p string, file bool) error {
	low := strings.ToLower(p)
	first, known := n.spelling[low]
	switch {
	case !known:
		n.spelling[low] = p
		if file {
			n.files[p] = true
		}
	case first != p:
		return entryErrorf(entry, "differs from %q only in upper and lower case", truncate(first))
	case n.files[p] != file:
		return entryErrorf(entry, "makes %q both a file and a directory", truncate(p))
	}
	return nil
}
