package releases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// The directory has a subdirectory for each release, named after its digest. In it are the manifest that has the
// digest and, in a directory of their own, the files that the manifest describes.
const (
	manifestFile     = "manifest.json"
	filesDir         = "files"
	tempPrefix       = ".tmp-"
	releaseDirPrefix = "sha256-"
)

// How long releases that nobody uses are kept, since somebody may be about to use one. If the disk is nearly
// full, it is only as long as it takes from getting a release to writing its digest into a status.
const (
	gracePeriod         = time.Hour
	fullDiskGracePeriod = 10 * time.Minute
)

// disk keeps releases. Each read checks a release against its digest.
type disk struct {
	dir       string
	statSpace func(dir string) (diskSpace, bool) // space of the filesystem, if it is known
	clock     clock.PassiveClock
	unused    unusedDigests
	writeMu   sync.Mutex   // held while a release is written; taken before mu
	mu        sync.RWMutex // held for writing while releases are moved in or out
}

func newDisk(dir string) *disk {
	return &disk{dir: dir, statSpace: statDiskSpace, clock: clock.RealClock{}}
}

func (d *disk) releaseDir(digest string) string {
	return filepath.Join(d.dir, releaseDirPrefix+strings.TrimPrefix(digest, "sha256:"))
}

// get reads a release, and removes it if it is damaged.
func (d *disk) get(digest string) (archive.Tree, error) {
	// Before the read, so that freeSpace does not remove the release meanwhile.
	d.unused.markUsed(digest)
	d.mu.RLock()
	files, err := d.readVerified(digest)
	d.mu.RUnlock()
	if !isDamaged(err) {
		return files, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if files, err = d.readVerified(digest); !isDamaged(err) { // it was replaced meanwhile
		return files, err
	}
	if e := os.RemoveAll(d.releaseDir(digest)); e != nil {
		return nil, fmt.Errorf("it is damaged on disk, and cannot be removed: %w", errors.Join(err, e))
	}
	return nil, fmt.Errorf("%w: it was damaged: %v", ErrMissing,
		err) //nolint:errorlint // this is not about what the source has
}

// readVerified reads a release and checks it against its digest.
func (d *disk) readVerified(digest string) (archive.Tree, error) {
	all, err := archive.ReadDir(d.releaseDir(digest), archiveLimits(), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	files := all.Sub(filesDir)
	if err := registry.Verify(digest, all[manifestFile], files); err != nil {
		return nil, err
	}
	if len(all) > len(files)+1 {
		return nil, fmt.Errorf("there are files beside %s and %s", manifestFile, filesDir)
	}
	return files, nil
}

// archiveLimits are the limits of a release, with room for its manifest.
func archiveLimits() archive.Limits {
	const manifest, entries = 4 << 20, 64 + 2
	most := archive.DefaultLimits.Packed // as registries have them
	return archive.Limits{Total: most + manifest, File: most, Entries: entries}
}

// isDamaged says whether another read would fail in the same way; too many open files, for one, will pass.
func isDamaged(err error) bool {
	var e syscall.Errno
	passes := errors.As(err, &e) && e.Temporary()
	return err != nil && !passes && !errors.Is(err, ErrMissing)
}

// touch marks a release as pulled just now.
func (d *disk) touch(digest string) {
	now := d.clock.Now()
	if info, err := os.Stat(d.releaseDir(digest)); err == nil && now.Sub(info.ModTime()) > fullDiskGracePeriod/2 {
		_ = os.Chtimes(d.releaseDir(digest), now, now) // if it is gone, it is pulled again
	}
	d.unused.markUsed(digest) // after its time is new; see markUnusedIfOld
}
