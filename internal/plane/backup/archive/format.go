// Package archive is the content of a backup: a tar archive that begins with a header, has every file once, and ends
// with a manifest that has size and SHA-256 of each. One that lacks the manifest was cut off, and is refused.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Format is the version of archives that this code writes, and the newest that it reads.
const Format = 1

// Names of the entries that every archive has.
const (
	headerName   = "polder-backup.json" // the first entry
	manifestName = "manifest.json"      // the last one

	// SnapshotName is the store, as `etcdctl snapshot save` writes it.
	SnapshotName = "etcd/snapshot.db"
	// MarkerName says which versions wrote the data directory.
	MarkerName = "version.json"
)

// folders of a data directory that archives may hold.
var folders = []string{"pki", "releases", "local"}

// Limits of what is read. A backup is large, but what is kept in memory of it must not be.
const (
	maxHeader   = 64 << 10
	maxManifest = 64 << 20
	maxEntries  = 200_000
	maxName     = 1024
	maxDepth    = 64
)

// ErrDamaged means that an archive is not as it was written: cut off, changed, or no archive at all.
var ErrDamaged = errors.New("the backup is damaged")

// ErrNewer means that a newer version wrote the archive.
var ErrNewer = errors.New("the backup is of a newer version")

// Header says what a backup is of.
type Header struct {
	Format        int       `json:"format"`
	CreatedAt     time.Time `json:"createdAt"`
	Polder        string    `json:"polder"`
	Kubernetes    string    `json:"kubernetes"`
	Etcd          string    `json:"etcd"`
	Address       string    `json:"address,omitempty"` // where the plane served
	Stacks        string    `json:"stacks,omitempty"`  // its default source of cluster stacks
	LocalClusters bool      `json:"localClusters"`     // the data of local clusters is in it
	LeftOut       int       `json:"leftOut,omitempty"` // so many local clusters were there, and are not in it
}

// Manifest is what an archive holds.
type Manifest struct {
	Header
	Store   Store   `json:"store"`
	Entries []Entry `json:"entries"`
}

// Store describes the snapshot of the store.
type Store struct {
	Revision int64  `json:"revision"` // the snapshot has at least this one
	SHA256   string `json:"sha256"`   // as in Entries
}

// Entry is a file, or a directory if its name ends with a slash.
type Entry struct {
	Name   string      `json:"name"`
	Mode   fs.FileMode `json:"mode"`
	Size   int64       `json:"size"`
	SHA256 string      `json:"sha256,omitempty"`
}

// IsDir says whether the entry is a directory.
func (e Entry) IsDir() bool { return strings.HasSuffix(e.Name, "/") }

// Size is that of all files together.
func (m Manifest) Size() int64 {
	var n int64
	for _, e := range m.Entries {
		n += e.Size
	}
	return n
}

// find returns the entry of a name.
func (m Manifest) find(name string) (Entry, bool) {
	i := slices.IndexFunc(m.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return m.Entries[i], true
}

// checkName refuses names that no backup has, among them all that lead out of the directory.
func checkName(name string) error {
	path := strings.TrimSuffix(name, "/")
	first, _, below := strings.Cut(path, "/")
	switch {
	case len(name) > maxName || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%w: it has a name that is too long", ErrDamaged)
	case !fs.ValidPath(path) || path == "." || strings.ContainsAny(name, "\x00\\"):
		return fmt.Errorf("%w: %q is no name of a file in it", ErrDamaged, name)
	case name == SnapshotName || name == MarkerName:
		return nil
	case slices.Contains(folders, first) && (below || name != path):
		return nil
	}
	return fmt.Errorf("%w: a file %q does not belong into one", ErrDamaged, name)
}
