package releases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RemoveUnused removes from disk all releases but those with these digests and those that were pulled within the
// last hour, and what a crash left behind. It leaves alone what is not of this package. Those of the last hour go
// too, as soon as the disk is nearly full, unless somebody gets them before.
func (l *Library) RemoveUnused(digests map[string]bool) error {
	entries, err := os.ReadDir(l.disk.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing old releases: %w", err)
	}
	var errs []error
	l.disk.unused.reset()
	for _, e := range entries {
		hex, place := strings.CutPrefix(e.Name(), releaseDirPrefix)
		digest := "sha256:" + hex
		unused := place && checkDigest(digest) == nil && !digests[digest]
		if unused || strings.HasPrefix(e.Name(), tempPrefix) {
			errs = append(errs, l.disk.removeOld(e.Name(), gracePeriod))
		}
		if unused {
			l.disk.markUnusedIfOld(digest)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing old releases: %w", err)
	}
	return nil
}

// removeOld removes a release or a temporary directory that is older than the grace period.
func (d *disk) removeOld(name string, grace time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.dir, name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || d.clock.Since(info.ModTime()) < grace {
		return err
	}
	return os.RemoveAll(path)
}

// markUnusedIfOld marks a release as unused, if it was not pulled just now. It is marked before its age is read:
// whoever touches it meanwhile marks it as used again.
func (d *disk) markUnusedIfOld(digest string) {
	d.unused.markUnused(digest)
	if info, err := os.Stat(d.releaseDir(digest)); err != nil || d.clock.Since(info.ModTime()) < fullDiskGracePeriod {
		d.unused.markUsed(digest)
	}
}
