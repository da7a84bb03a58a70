package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
)

// eventually asks until the answer is nil.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (r *running) expectWritable(t *testing.T, want bool) {
	t.Helper()
	eventually(t, func() error {
		_, err := r.kv.Put(t.Context(), "/registry/probe", "x")
		if want && err != nil {
			return err
		}
		if !want && !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("a write ends with %w", err)
		}
		return nil
	})
}

// On a full disk the store stops to write before a write can fail, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 30)
	dir := newStoreDir(t)
	small := func(c *Config) {
		c.RecordInterval = 50 * time.Millisecond
		c.FreeBytes = func(string) (uint64, bool) { return free.Load(), true }
	}
	r := start(t, dir, small)
	r.put(t, "/registry/a", "1")
	reserve := filepath.Join(dir, "etcd", "reserve")
	eventually(t, func() error { _, err := os.Stat(reserve); return err })
	if err := r.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}

	free.Store(10 << 20)
	r.expectWritable(t, false)
	eventually(t, func() error {
		err := r.Healthy(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the disk that holds "+filepath.Join(dir, "etcd")+" is full (10 MB are free") {
			return fmt.Errorf("Healthy() = %w", err)
		}
		return nil
	})
	if got, err := r.kv.Get(t.Context(), "/registry/a"); err != nil || got.Count != 1 {
		t.Errorf("reading: %v, %v", got, err)
	}
	if _, err := os.Stat(reserve); err == nil {
		t.Error("the reserve is still there")
	}
	free.Store(lowRoom + 1) // not enough to begin again
	if err := r.look(t.Context()).problem(dir); err == nil {
		t.Error("it goes on too early")
	}

	// Also a new process goes on by itself.
	r.stop(true)
	free.Store(1 << 30)
	r = start(t, dir, small)
	r.expectWritable(t, true)
	if err := r.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// A store that is full of history makes room by itself; one that is full of objects once some are deleted.
func TestFullStore(t *testing.T) {
	dir := newStoreDir(t)
	r := start(t, dir, func(c *Config) { c.RecordInterval, c.Quota = 50*time.Millisecond, 24<<20 })
	value := strings.Repeat("x", 100<<10)
	refused := 0
	for i := range 600 { // 60 MB of history, of ten objects
		switch _, err := r.kv.Put(t.Context(), fmt.Sprintf("/registry/%d", i%10), value); {
		case errors.Is(err, rpctypes.ErrNoSpace):
			refused++
			r.expectWritable(t, true)
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Logf("refused %d of 600 writes; the file has %d MB", refused, r.sizes().File/1e6)
	if r.sizes().File > 24<<20 {
		t.Errorf("the file has %d bytes", r.sizes().File)
	}

	var m maintenance.Result
	for i, writable := 0, true; writable; i++ { // until maintenance does not help any more
		_, err := r.kv.Put(t.Context(), fmt.Sprintf("/registry/full/%d", i), value)
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			continue
		}
		if m, err = r.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		writable = m.Writable
	}
	if !strings.Contains(m.Problem, "polder maintain") {
		t.Errorf("Maintain() = %+v", m)
	}
	full := m.After.File
	if err := r.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "polder maintain") {
		t.Errorf("Healthy() = %v", err)
	}
	for i := range 100 {
		if _, err := r.kv.Delete(t.Context(), fmt.Sprintf("/registry/full/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.Maintain(t.Context())
	if err != nil || !m.Writable || m.After.File > full/4*3 {
		t.Fatalf("Maintain() = %+v, %v", m, err)
	}
	t.Logf("%d MB to %d MB, blocked for %s", full/1e6, m.After.File/1e6, m.Blocked)
	r.expectWritable(t, true)
	if err := r.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDecide(t *testing.T) {
	const quota = 1 << 30
	for name, tt := range map[string]struct {
		room    room
		sizes   maintenance.Sizes
		changes int64
		want    action
	}{
		"small":                       {room{}, maintenance.Sizes{File: 20 << 20, InUse: 1 << 20}, 0, leave},
		"mostly gaps, quiet":          {room{}, maintenance.Sizes{File: 600 << 20, InUse: 200 << 20}, 3, maintain},
		"mostly gaps, busy":           {room{}, maintenance.Sizes{File: 600 << 20, InUse: 200 << 20}, 5000, leave},
		"near the limit, gaps":        {room{}, maintenance.Sizes{File: 900 << 20, InUse: 700 << 20}, 5000, maintain},
		"near the limit, no gaps":     {room{}, maintenance.Sizes{File: 900 << 20, InUse: 890 << 20}, 5000, compact},
		"near the limit, but at rest": {room{}, maintenance.Sizes{File: 900 << 20, InUse: 890 << 20}, 0, leave},
		"full":                        {room{hasAlarm: true}, maintenance.Sizes{File: 1 << 30, InUse: 1 << 30}, 1, maintain},
		"full, nothing was deleted":   {room{hasAlarm: true}, maintenance.Sizes{File: 1 << 30, InUse: 1 << 30}, 0, leave},
		"no room on the disk":         {room{hasAlarm: true, diskLow: true}, maintenance.Sizes{File: 1 << 30, InUse: 1 << 20}, 1, leave},
	} {
		t.Run(name, func(t *testing.T) {
			m := maintainer{revision: 1000}
			tt.room.quota, tt.room.size = quota, tt.sizes.File
			if got := m.decide(tt.room, tt.sizes, 1000+tt.changes); got != tt.want {
				t.Errorf("decide() = %d, want %d", got, tt.want)
			}
		})
	}
}
