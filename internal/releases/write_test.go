package releases

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// pulled is a release to put on disk, with one file.
func pulled(name string) *registry.Pulled {
	manifest := `{"schemaVersion":2,"artifactType":"application/vnd.scs.cluster-stacks.v1","layers":[{"digest":"` + digest.FromString("x").String() +
		`","size":1,"annotations":{"org.opencontainers.image.title":"` + name + `"}}]}`
	return &registry.Pulled{
		Release: &stack.Release{Files: archive.Tree{name: []byte("x")}}, Digest: digest.FromString(manifest).String(), Manifest: []byte(manifest),
	}
}

// meanwhile starts something that reads the disk and then wants its lock alone, and calls then in between.
func meanwhile(t *testing.T, d *disk, start func() error, then func()) error {
	t.Helper()
	d.mu.RLock()
	done := make(chan error, 1)
	go func() { done <- start() }()
	limit := time.After(10 * time.Second)
	for d.mu.TryRLock() { // until somebody waits for the lock
		d.mu.RUnlock()
		select {
		case <-limit:
			t.Fatal("nobody wants the disk alone")
		case <-time.After(time.Millisecond):
		}
	}
	then()
	d.mu.RUnlock()
	return <-done
}

// A release that was damaged, and is repaired before it could be removed, stays.
func TestRepairedMeanwhile(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	if err := d.put(p); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.releaseDir(p.Digest), filesDir, "a")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("y")
	get := func() error { _, err := d.get(p.Digest); return err }
	if err := meanwhile(t, d, get, func() { write("x") }); err != nil {
		t.Error(err)
	}
	write("y")
	if err := meanwhile(t, d, get, func() {}); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// Of two that write the same, the second does not fail.
func TestWrittenMeanwhile(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	if err := meanwhile(t, d, func() error { return d.put(p) }, func() {
		if err := archive.WriteDir(d.releaseDir(p.Digest), archive.Tree{"half": nil}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Error(err)
	}
	if _, err := d.get(p.Digest); err != nil {
		t.Error(err)
	}
}

// What cannot be written leaves nothing behind.
func TestHalfWritten(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	p.Release.Files[strings.Repeat("b", 300)] = nil // longer than a file's name can be
	if err := d.put(p); err == nil {
		t.Error("it is taken")
	}
	if left, err := os.ReadDir(d.dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// What is there already is not written again.
func TestWrittenOnce(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	var last os.FileInfo
	for range 2 {
		if err := d.put(p); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(d.releaseDir(p.Digest), manifestFile))
		if err != nil || last != nil && !os.SameFile(info, last) {
			t.Errorf("it is another file: %v", err)
		}
		last = info
	}
}
