package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// A machine whose files outgrow its disk stops its programs, says why, and goes on when there is room.
func TestDiskFull(t *testing.T) {
	k := newKubelet(t)
	k.pods.maxDisk, k.pods.checkInterval = 10<<20, 10*time.Millisecond
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.pods.run(ctx) }()
	pid := waitUntilRunning(t, k, "etcd")
	fill := filepath.Join(string(k.cfg.Dir), "fill")
	if err := os.WriteFile(fill, make([]byte, 11<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "its program is stopped", func() bool { return !processtest.IsAlive(pid) })
	processtest.Eventually(t, "it says why", func() bool {
		_, _, problem := k.Status()
		return strings.Contains(problem, "disk is full") && strings.Contains(problem, "10 are allowed")
	})
	if err := os.Truncate(fill, 9500<<10); err != nil { // still more than nine tenths
		t.Fatal(err)
	}
	if err := k.pods.checkDisk(); err == nil {
		t.Error("it would start again with no room to speak of")
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	waitUntilRunning(t, k, "etcd")
	processtest.Eventually(t, "the problem is over", func() bool { _, _, problem := k.Status(); return problem == "" })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	before := diskUsage(dir)
	sparse := filepath.Join(dir, "sparse")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if used := diskUsage(dir) - before; used < 1<<20 || used > 2<<20 {
		t.Errorf("%d bytes", used)
	}
	if used := diskUsage(filepath.Join(dir, "none")); used != 0 {
		t.Errorf("%d bytes of nothing", used)
	}
}
