package releases

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const gib = 1 << 30

func TestReserved(t *testing.T) {
	for name, c := range map[string]struct{ total, want uint64 }{
		"a large disk": {500 * gib, gib},
		"ten":          {10 * gib, gib},
		"a small disk": {2 * gib, 2 * gib / 10},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (diskSpace{total: c.total}).reserved(); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestStatDiskSpace(t *testing.T) {
	if s, ok := statDiskSpace(t.TempDir()); !ok || s.total == 0 || s.free > s.total {
		t.Errorf("%+v, %t", s, ok)
	}
	if s, ok := statDiskSpace(filepath.Join(t.TempDir(), "none")); ok {
		t.Errorf("%+v", s)
	}
}

// A release takes no more space than bytesOnDisk says.
func TestBytesOnDisk(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	if err := d.put(p); err != nil {
		t.Fatal(err)
	}
	var taken int64
	if err := filepath.Walk(d.releaseDir(p.Digest), func(_ string, info os.FileInfo, err error) error {
		taken += (info.Size() + blockBytes - 1) / blockBytes * blockBytes
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := bytesOnDisk(p); got < taken || got > taken+blockBytes {
		t.Errorf("%d, and it takes %d", got, taken)
	}
}

func TestPutLeavesSpace(t *testing.T) {
	need := uint64(bytesOnDisk(pulled("a")))
	for name, c := range map[string]struct {
		space   diskSpace
		known   bool
		refused string
	}{
		"enough":                         {diskSpace{500 * gib, 1000 * gib}, true, ""},
		"just enough":                    {diskSpace{gib + need, 1000 * gib}, true, ""},
		"a byte too few":                 {diskSpace{gib + need - 1, 1000 * gib}, true, "1073 MB"},
		"nothing":                        {diskSpace{0, 1000 * gib}, true, "1073 MB"},
		"just enough of a small disk":    {diskSpace{gib/10 + need, gib}, true, ""},
		"a byte too few of a small disk": {diskSpace{gib/10 + need - 1, gib}, true, "107 MB"},
		"it is not known":                {diskSpace{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(filepath.Join(t.TempDir(), "cache"))
			d.statSpace = func(dir string) (diskSpace, bool) {
				if dir != d.dir {
					t.Errorf("it looks at %s", dir)
				}
				return c.space, c.known
			}
			err := d.put(pulled("a"))
			if (err == nil) != (c.refused == "") {
				t.Fatalf("%v, want %q", err, c.refused)
			}
			if c.refused == "" {
				return
			}
			if s := err.Error(); !strings.Contains(s, "the disk of the plane is nearly full: "+c.refused) || strings.Contains(s, d.dir) || strings.Contains(s, "\n") {
				t.Errorf("%s", s)
			}
			if left, err := os.ReadDir(d.dir); err != nil || len(left) != 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

// A release that is on disk already is no error, however full the disk is.
func TestPutAgainOnAFullDisk(t *testing.T) {
	d, p := newDisk(t.TempDir()), pulled("a")
	if err := d.put(p); err != nil {
		t.Fatal(err)
	}
	d.statSpace = func(string) (diskSpace, bool) { return diskSpace{0, gib}, true }
	if err := d.put(p); err != nil {
		t.Error(err)
	}
}

// holds limits a disk to the space of so many releases.
func (d *disk) holds(t *testing.T, most int) {
	t.Helper()
	const total = 1000 * gib
	d.statSpace = func(dir string) (diskSpace, bool) {
		if d.writeMu.TryLock() {
			t.Error("another may take the same room")
			d.writeMu.Unlock()
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		free := max(most-len(entries), 0)
		return diskSpace{gib + uint64(free)*uint64(bytesOnDisk(pulled("a"))), total}, true
	}
}

// Of many that write at once, as many succeed as fit.
func TestPutAtOnce(t *testing.T) {
	d := newDisk(t.TempDir())
	d.holds(t, 3)
	var all sync.WaitGroup
	var written atomic.Int32
	for _, name := range strings.Split("abcdefgh", "") {
		all.Go(func() {
			if d.put(pulled(name)) == nil {
				written.Add(1)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(d.dir); err != nil || len(left) != 3 || written.Load() != 3 {
		t.Errorf("%d are written, %d are there, %v", written.Load(), len(left), err)
	}
}
