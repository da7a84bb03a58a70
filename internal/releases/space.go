package releases

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/stack/registry"
)

// What stays free on the disk, since etcd writes there too, and stops if it cannot: a gibibyte holds its next
// log files and a snapshot. Of a disk below ten, a tenth must do.
const (
	leastFree  = 1 << 30
	leastShare = 10
)

// block is what even an empty file or directory may take on disk.
const block = 4 << 10

// space is that of a filesystem, in bytes.
type space struct{ free, total uint64 }

// least is how much of it stays free.
func (s space) least() uint64 { return min(leastFree, s.total/leastShare) }

// spaceOf looks at the filesystem of a directory.
func spaceOf(dir string) (s space, ok bool) {
	var f unix.Statfs_t
	if unix.Statfs(dir, &f) != nil || f.Blocks == 0 {
		return space{}, false // not known; writing will tell
	}
	size := uint64(f.Bsize) //nolint:gosec // its type and sign differ between systems; it is never negative
	return space{free: f.Bavail * size, total: f.Blocks * size}, true
}

// footprint is what a release takes on disk at most.
func footprint(p *registry.Pulled) int64 {
	const others = 3 // the manifest, and two directories
	return int64(len(p.Manifest)) + p.Release.Files.Size() + block*int64(len(p.Release.Files)+others)
}

// room says whether so many bytes may be written. If not, it removes what nobody has first. Its caller holds
// writing, so that two do not take the same room. The error is the same as long as the disk is full: it ends
// up in a status, which is on that disk.
func (d *disk) room(bytes int64) error {
	if _, ok := d.fits(bytes); ok {
		return nil
	}
	d.removeSpare()
	s, ok := d.fits(bytes)
	if ok {
		return nil
	}
	return fmt.Errorf("the disk of the plane is nearly full: %d MB of it must stay free, so no release is added; whoever operates the plane has to make room, then it goes on by itself", s.least()/1e6)
}

func (d *disk) fits(bytes int64) (space, bool) {
	s, ok := d.space(d.dir)
	return s, !ok || s.free >= s.least()+uint64(bytes) //nolint:gosec // it is never negative
}

// check is room for who does not know yet how much it will be.
func (d *disk) check() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.room(0)
}
