package kubelet

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestManifestWatcher(t *testing.T) {
	w, err := NewManifestWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	one, two := t.TempDir(), filepath.Join(t.TempDir(), "two")
	if err := os.Mkdir(two, 0o700); err != nil {
		t.Fatal(err)
	}
	changesOne, endOne := watchForTest(t, w, one)
	changesTwo, endTwo := watchForTest(t, w, two)
	touch(t, one)
	awaitNotice(t, changesOne)
	if len(changesTwo) > 0 {
		t.Error("a change elsewhere is told")
	}
	endOne()
	touch(t, two)
	awaitNotice(t, changesTwo)
	if err := os.RemoveAll(two); err != nil {
		t.Fatal(err)
	}
	awaitNotice(t, changesTwo)
	endTwo()
	if err := os.Mkdir(two, 0o700); err != nil {
		t.Fatal(err)
	}
	again, end := watchForTest(t, w, two)
	defer end()
	endTwo() // that of the directory that is gone ends nothing else
	touch(t, two)
	awaitNotice(t, again)
	if len(w.dirs) != 1 {
		t.Errorf("directories are kept: %v", w.dirs)
	}
	if _, _, err := w.Watch(filepath.Join(one, "none")); err == nil || len(w.dirs) != 1 {
		t.Errorf("a directory that is not there: %v, %v", err, w.dirs)
	}
}

// Without a watcher nothing is told, and nothing fails.
func TestNoManifestWatcher(t *testing.T) {
	var none *ManifestWatcher
	changes, end, err := none.Watch(t.TempDir())
	if changes != nil || err != nil {
		t.Errorf("%v, %v", changes, err)
	}
	end()
}

func watchForTest(t *testing.T, w *ManifestWatcher, dir string) (<-chan struct{}, func()) {
	t.Helper()
	changes, end, err := w.Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	return changes, end
}

func touch(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitNotice waits for one, and for what follows from the same change.
func awaitNotice(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	limit := time.After(10 * time.Second)
	select {
	case <-changes:
	case <-limit:
		t.Fatal("a change is not told")
	}
	for {
		select {
		case <-changes:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}
