package releases

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// older makes a file older than it is.
func older(t *testing.T, path string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// A disk with room for one release holds one when another comes. If nobody uses the first, it makes room.
func TestMakeRoom(t *testing.T) {
	there, comes := pulled("a"), pulled("b")
	nobody, somebody := map[string]bool{}, map[string]bool{there.Digest: true}
	keep := func(used map[string]bool) func(*testing.T, *Library) {
		return func(t *testing.T, l *Library) {
			if err := l.RemoveUnused(used); err != nil {
				t.Error(err)
			}
		}
	}
	get := func(t *testing.T, l *Library) {
		if _, err := l.disk.get(there.Digest); err != nil {
			t.Error(err)
		}
	}
	touch := func(_ *testing.T, l *Library) { l.disk.touch(there.Digest) }
	put := func(t *testing.T, l *Library) {
		if err := l.disk.put(there); err != nil {
			t.Error(err)
		}
	}
	damage := func(t *testing.T, l *Library) {
		if err := os.Remove(filepath.Join(l.disk.releaseDir(there.Digest), manifestFile)); err != nil {
			t.Error(err)
		}
		older(t, l.disk.releaseDir(there.Digest), 20*time.Minute)
	}
	for name, c := range map[string]struct {
		age   time.Duration
		room  int
		then  []func(*testing.T, *Library)
		stays bool
	}{
		"nobody has it":                             {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody)}, false},
		"nobody has it, and there is room":          {20 * time.Minute, 2, []func(*testing.T, *Library){keep(nobody)}, true},
		"somebody has it":                           {20 * time.Minute, 1, []func(*testing.T, *Library){keep(somebody)}, true},
		"somebody has it by now":                    {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody), keep(somebody)}, true},
		"nobody has it any more":                    {20 * time.Minute, 1, []func(*testing.T, *Library){keep(somebody), keep(nobody)}, false},
		"nobody has said who has it":                {20 * time.Minute, 1, nil, true},
		"it was just written":                       {5 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody)}, true},
		"it was read since":                         {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody), get}, true},
		"it was pulled since":                       {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody), touch}, true},
		"it was pulled just before":                 {20 * time.Minute, 1, []func(*testing.T, *Library){touch, keep(nobody)}, true},
		"it was damaged, and written again since":   {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody), damage, put}, true},
		"it was read, and nobody has it any longer": {20 * time.Minute, 1, []func(*testing.T, *Library){keep(nobody), get, keep(nobody)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t.TempDir())
			l := &Library{disk: d}
			if err := d.put(there); err != nil {
				t.Fatal(err)
			}
			older(t, d.releaseDir(there.Digest), c.age)
			for _, f := range c.then {
				f(t, l)
			}
			d.holds(t, c.room)
			if err := d.put(comes); (err == nil) != (!c.stays || c.room > 1) {
				t.Errorf("what comes: %v", err)
			}
			if _, err := d.get(there.Digest); (err == nil) != c.stays {
				t.Errorf("what is there: %v", err)
			}
		})
	}
}

// What a crash left behind makes room, however young it is; what is not ours does not.
func TestMakeRoomOfLeftovers(t *testing.T) {
	for name, want := range map[string]bool{".tmp-123": true, "somebody's": false, "sha256-other": false} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t.TempDir())
			l := &Library{disk: d}
			if err := os.Mkdir(filepath.Join(d.dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			older(t, filepath.Join(d.dir, name), 20*time.Minute)
			if err := l.RemoveUnused(nil); err != nil {
				t.Fatal(err)
			}
			d.holds(t, 1)
			if err := d.put(pulled("a")); (err == nil) != want {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(d.dir, name)); os.IsNotExist(err) != want {
				t.Error(err)
			}
		})
	}
}

// A release that is read while it is about to be removed stays.
func TestUnusedReadMeanwhile(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	if err := d.put(p); err != nil {
		t.Fatal(err)
	}
	d.unused.reset()
	d.unused.markUnused(p.Digest)
	if err := meanwhile(t, d, func() error { d.freeSpace(); return nil }, func() { d.unused.markUsed(p.Digest) }); err != nil {
		t.Error(err)
	}
	if _, err := d.get(p.Digest); err != nil {
		t.Error(err)
	}
}

// A release that was just written stays, though RemoveUnused has seen a damaged one in its place before.
func TestUnusedWrittenMeanwhile(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	d.unused.reset()
	if err := meanwhile(t, d, func() error { return d.put(p) }, func() { d.unused.markUnused(p.Digest) }); err != nil {
		t.Error(err)
	}
	if d.unused.has(p.Digest) {
		t.Error("it goes with the spare ones")
	}
}
