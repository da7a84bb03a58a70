package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// running is a store that serves.
type running struct {
	*Etcd
	kv   *clientv3.Client
	stop func(inOrder bool)
}

// start opens the store in dir, which Verify must not refuse.
func start(t testing.TB, dir string, change func(*Config)) *running {
	t.Helper()
	if err := Verify(t.Context(), filepath.Join(dir, "etcd"), zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: filepath.Join(dir, "etcd"), SocketDir: dir, Log: zap.NewNop(), Clock: clock.RealClock{}}
	if change != nil {
		change(&cfg)
	}
	e := New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	select {
	case <-e.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	r := &running{Etcd: e, kv: v3client.New(e.server.Server)}
	r.stop = func(inOrder bool) {
		r.stop = func(bool) {}
		_ = r.kv.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !inOrder { // what a crash leaves is the same but for this
			if err := os.Remove(filepath.Join(dir, "etcd", "closed.json")); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { r.stop(true) })
	return r
}

func (r *running) put(t testing.TB, key, value string) {
	t.Helper()
	if _, err := r.kv.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// newStoreDir is short, since it holds sockets.
func newStoreDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func database(dir string) string { return filepath.Join(dir, "etcd", "member", "snap", "db") }

// replace changes bytes wherever they are in a file.
func replace(t testing.TB, file, from, to string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte(from), []byte(to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, dir string, words ...string) {
	t.Helper()
	begin := time.Now()
	err := Verify(t.Context(), filepath.Join(dir, "etcd"), zap.NewNop())
	t.Logf("after %s: %v", time.Since(begin).Round(time.Millisecond), err)
	if exit.Code(err) != exit.StoreDamaged {
		t.Fatalf("Verify() = %v", err)
	}
	for _, w := range append(words, "polder restore") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the message lacks %q: %v", w, err)
		}
	}
}

func TestVerifyAfterAStopInOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(t *testing.T, dir string)
		words  []string
	}{
		"a value is replaced": {
			func(t *testing.T, dir string) { replace(t, database(dir), "right value", "wrong value") },
			[]string{"not what was written", "remove records and closed.json"},
		},
		"an older copy of the database": {
			func(t *testing.T, dir string) {
				b, err := os.ReadFile(filepath.Join(dir, "copy"))
				if err == nil {
					err = os.WriteFile(database(dir), b, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}, []string{"not what"},
		},
		"the database is cut": {
			func(t *testing.T, dir string) { cut(t, database(dir), 64) }, []string{"is damaged", "bytes"},
		},
		"the database is gone": {
			func(t *testing.T, dir string) { remove(t, database(dir)) }, []string{"database", "is missing"},
		},
		"all is gone but the records": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "etcd", "member")) }, []string{"are missing"},
		},
		"the write-ahead log is gone": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "etcd", "member", "wal")) }, []string{"write-ahead log", "is missing"},
		},
		"the write-ahead log is cut": {
			func(t *testing.T, dir string) { cut(t, walFile(t, dir), 40_000) }, []string{"write-ahead log ends at entry"},
		},
		"bytes of the write-ahead log are replaced": {
			func(t *testing.T, dir string) { replace(t, walFile(t, dir), "right value", "wrong value") },
			[]string{"write-ahead log cannot be read", "crc"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newStoreDir(t)
			r := start(t, dir, nil)
			fill(t, r, "old", 20)
			r.stop(true)
			b, err := os.ReadFile(database(dir))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "copy"), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			r = start(t, dir, nil)
			fill(t, r, "new", 200)
			r.put(t, "/registry/a", "right value")
			r.stop(true)
			if err := Verify(t.Context(), filepath.Join(dir, "etcd"), zap.NewNop()); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, dir)
			refused(t, dir, tt.words...)
		})
	}
}

// After a crash there is no checksum of everything, but all that was recorded must still be there.
func TestVerifyAfterACrash(t *testing.T) {
	dir := newStoreDir(t)
	r := start(t, dir, nil)
	fill(t, r, "a", 700) // more than a chunk
	r.put(t, "/registry/a", "right value")
	if _, err := r.writeRecords(t.Context(), r.server.Server); err != nil {
		t.Fatal(err)
	}
	fill(t, r, "b", 50)
	r.stop(false)
	verify := func() error { return Verify(t.Context(), filepath.Join(dir, "etcd"), zap.NewNop()) }
	if err := verify(); err != nil {
		t.Fatal(err)
	}

	// Compaction and defragmentation change the file, but nothing that counts.
	r = start(t, dir, nil)
	fill(t, r, "a", 700)
	if _, err := r.kv.Compact(t.Context(), r.server.Server.KV().Rev()-10, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Server.Defragment(); err != nil {
		t.Fatal(err)
	}
	r.stop(false)
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(database(dir))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, database(dir), "right value", "wrong value")
	refused(t, dir, "/registry/a", "has changed since it was written")

	// A damaged file of records is no reason to refuse, only to say so.
	if err := os.WriteFile(database(dir), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "etcd", "records"), "PLDRREC1", "PLDRREC2")
	if err := verify(); err != nil {
		t.Fatal(err)
	}
}

// A revision that nobody compacted cannot just be gone.
func TestVerifyMissesRevisions(t *testing.T) {
	dir := newStoreDir(t)
	r := start(t, dir, nil)
	fill(t, r, "a", 10)
	r.stop(true)
	before, err := os.ReadFile(database(dir))
	if err != nil {
		t.Fatal(err)
	}
	r = start(t, dir, nil)
	fill(t, r, "b", 10)
	if _, err := r.writeRecords(t.Context(), r.server.Server); err != nil {
		t.Fatal(err)
	}
	r.stop(false)
	if err := os.WriteFile(database(dir), before, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "which was written before, is missing")
}

// The very first start may end at any moment.
func TestVerifyTakesWhatAFirstStartLeaves(t *testing.T) {
	dir := newStoreDir(t)
	file := database(dir)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, nil)
}

func fill(t testing.TB, r *running, prefix string, n int) {
	t.Helper()
	for i := range n {
		r.put(t, fmt.Sprintf("/registry/%s/%d", prefix, i), strings.Repeat("x", 1000))
	}
}

func cut(t *testing.T, file string, divisor int64) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/divisor)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func walFile(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

// BenchmarkVerify measures what a start and a stop cost with a store of POLDER_BENCH_MIB, 64 by default.
func BenchmarkVerify(b *testing.B) {
	mib := 64
	if s := os.Getenv("POLDER_BENCH_MIB"); s != "" {
		if _, err := fmt.Sscan(s, &mib); err != nil {
			b.Fatal(err)
		}
	}
	dir := newStoreDir(b)
	r := start(b, dir, nil)
	value := make([]byte, 8<<10)
	for i := range mib << 20 / len(value) {
		_, _ = rand.Read(value)
		binary.BigEndian.PutUint64(value, uint64(i))
		r.put(b, fmt.Sprintf("/registry/%d", i), string(value))
	}
	begin := time.Now()
	if _, err := r.writeRecords(b.Context(), r.server.Server); err != nil {
		b.Fatal(err)
	}
	b.Logf("records of %d MiB: %s", mib, time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	if err := r.server.Server.Defragment(); err != nil {
		b.Fatal(err)
	}
	b.Logf("defragmentation: %s", time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	r.stop(true)
	b.Logf("stop: %s", time.Since(begin).Round(time.Millisecond))
	for b.Loop() {
		if err := Verify(b.Context(), filepath.Join(dir, "etcd"), zap.NewNop()); err != nil {
			b.Fatal(err)
		}
	}
}
