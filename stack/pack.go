package stack

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/polder-kaas/polder/stack/archive"
)

// Pack writes a release anew: its archives and metadata in the one way this library writes them,
// all other files as they are. Packing what was loaded from what was packed changes nothing.
func (r *Release) Pack() (archive.Tree, error) {
	out := maps.Clone(r.Files)
	b, err := r.Metadata.Marshal()
	if err != nil {
		return nil, err
	}
	out[metadataFile] = b
	v := r.Metadata.Versions
	for name, t := range map[string]archive.Tree{
		r.Name.ClassChart() + "-" + v.ClusterStack.String() + ".tgz":            r.classArchive,
		r.Name.AddonChart() + "-" + v.Components.ClusterAddon.String() + ".tgz": r.addonArchive,
	} {
		var buf bytes.Buffer
		if err := archive.Write(&buf, t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = buf.Bytes()
	}
	return out, nil
}

// fileInfo is as much of a file as Helm's rules for ignoring files ask for.
type fileInfo struct {
	name string
	dir  bool
}

func (f fileInfo) Name() string       { return f.name }
func (f fileInfo) Size() int64        { return 0 }
func (f fileInfo) Mode() fs.FileMode  { return 0 }
func (f fileInfo) ModTime() time.Time { return time.Time{} }
func (f fileInfo) IsDir() bool        { return f.dir }
func (f fileInfo) Sys() any           { return nil }
