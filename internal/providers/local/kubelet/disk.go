package kubelet

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// maxDisk is how large the disk of a machine is: etcd's store has at most 8 GiB, and as much again is for its
	// write-ahead log and all else.
	maxDisk = 16 << 30
	// diskCheckInterval is how often the disk is looked at.
	diskCheckInterval = 10 * time.Second
)

// checkDisk returns an error while the machine's files take more than its disk has. What would fill the disk of the
// whole computer must end with the machine: its programs are stopped, as on a computer whose own disk is full.
func (p *staticPods) checkDisk() error {
	used, limit := diskUsage(string(p.cfg.Dir)), p.maxDisk
	if p.isHeld() {
		limit -= limit / 10 // or it would start and stop in turns
	}
	if used <= limit {
		return nil
	}
	return fmt.Errorf("the machine's disk is full: %s has %d MiB, %d are allowed, so its programs are stopped; "+
		"delete the machine, or make room there", p.cfg.Dir, used>>20, p.maxDisk>>20)
}

// hold stops all programs while the disk is full, and lets them start again afterwards. It returns false if they are
// not to run now.
func (p *staticPods) hold(full bool) bool {
	p.mu.Lock()
	was := p.held
	p.held = full
	p.mu.Unlock()
	switch {
	case full && !was:
		p.stop()
		p.onChange()
		return false
	case !full && was:
		return p.allowStarts()
	}
	return !full
}

func (p *staticPods) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// diskUsage is what the files below dir take, in bytes. What cannot be read, because it was just removed for example,
// takes nothing.
func diskUsage(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += s.Blocks * 512 //nolint:mnd // the unit of this field, on all file systems
			}
		}
		return nil
	})
	return bytes
}
