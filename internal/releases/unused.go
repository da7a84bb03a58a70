package releases

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// unusedDigests are digests that nobody had when RemoveUnused was last called, and nobody has asked for since.
// Whoever has got another one may have written it into a status, which only the next RemoveUnused knows of.
type unusedDigests struct {
	mu  sync.Mutex
	all map[string]bool
}

func (s *unusedDigests) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = map[string]bool{}
}

func (s *unusedDigests) markUnused(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[digest] = true
}

// markUsed takes a release out, since somebody has it.
func (s *unusedDigests) markUsed(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, digest)
}

func (s *unusedDigests) has(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[digest]
}

func (s *unusedDigests) digests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.all))
}

// freeSpace removes releases that nobody has, though they are young, and what a crash left behind. Its caller
// holds writeMu, so nobody is writing the temporary directories it finds. Errors are ignored: the next
// RemoveUnused meets them again and returns them.
func (d *disk) freeSpace() {
	for _, digest := range d.unused.digests() {
		d.removeIfUnused(digest)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			_ = d.removeOld(e.Name(), 0)
		}
	}
}

func (d *disk) removeIfUnused(digest string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unused.has(digest) { // nobody has begun to read it meanwhile
		_ = os.RemoveAll(d.releaseDir(digest))
	}
}
