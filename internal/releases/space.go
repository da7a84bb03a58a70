package releases

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/stack/registry"
)

// What stays free on the disk, since etcd writes there too, and stops if it cannot: a gibibyte holds its next log
// files and a snapshot. On a disk of less than ten gibibytes, a tenth must do.
const (
	maxReservedBytes = 1 << 30
	reservedShare    = 10
)

// blockBytes is what even an empty file or directory may take on disk.
const blockBytes = 4 << 10

// diskSpace is the space of a filesystem, in bytes.
type diskSpace struct{ free, total uint64 }

// reserved is how many bytes have to stay free.
func (s diskSpace) reserved() uint64 { return min(maxReservedBytes, s.total/reservedShare) }

// statDiskSpace returns the space of a directory's filesystem.
func statDiskSpace(dir string) (s diskSpace, ok bool) {
	var f unix.Statfs_t
	if unix.Statfs(dir, &f) != nil || f.Blocks == 0 {
		return diskSpace{}, false // unknown; writing will fail if there is too little
	}
	size := uint64(f.Bsize) //nolint:gosec // its type and sign differ between systems; it is never negative
	return diskSpace{free: f.Bavail * size, total: f.Blocks * size}, true
}

// bytesOnDisk is what a release takes on disk at most.
func bytesOnDisk(p *registry.Pulled) int64 {
	const others = 3 // the manifest, and two directories
	return int64(len(p.Manifest)) + p.Release.Files.Size() + blockBytes*int64(len(p.Release.Files)+others)
}

// ensureSpace returns an error if so many bytes may not be written. Before that, it removes releases that nobody
// has. Its caller holds writeMu, so that two do not count on the same space. The error is the same as long as the
// disk is full: it ends up in a status, which is on that disk.
func (d *disk) ensureSpace(bytes int64) error {
	if _, ok := d.hasSpace(bytes); ok {
		return nil
	}
	d.freeSpace()
	s, ok := d.hasSpace(bytes)
	if ok {
		return nil
	}
	return fmt.Errorf("the disk of the plane is nearly full: %d MB of it must stay free, so no release is added; whoever operates the plane has to make room, then it goes on by itself", s.reserved()/1e6)
}

func (d *disk) hasSpace(bytes int64) (diskSpace, bool) {
	s, ok := d.statSpace(d.dir)
	return s, !ok || s.free >= s.reserved()+uint64(bytes) //nolint:gosec // it is never negative
}

// checkSpace is ensureSpace for callers that do not know yet how many bytes they need.
func (d *disk) checkSpace() error {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	return d.ensureSpace(0)
}
