package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	ociregistry "github.com/google/go-containerregistry/pkg/registry"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// measurePulls measures the memory of polder while it pulls a small release and one of nearly 32 MiB, the most that is
// accepted.
func (b *bench) measurePulls(ctx context.Context) (rows scenario.Rows, err error) {
	server := httptest.NewServer(ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/stacks"
	dir, err := os.MkdirTemp("", "polder-bench-")
	if err != nil {
		return rows, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	for i, mib := range []int{0, 30} {
		r, err := padded(b.shipped, mib)
		if err != nil {
			return rows, err
		}
		store, _, err := registry.Open(ctx, ref, registry.Options{})
		if err != nil {
			return rows, err
		}
		if _, err := store.Publish(ctx, r); err != nil {
			return rows, err
		}
		took, most, err := pull(ctx, ref+":"+r.Name.Tag(), filepath.Join(dir, "out"))
		if err != nil {
			return rows, err
		}
		rows.AddSentence("%spolder stack pull of a release of %.1f MiB: %s, at most %d MiB of memory",
			strings.Repeat("\n", 1-i), float64(r.Files.Size())/(1<<20), ms(took), most>>20)
	}
	return rows, nil
}

// pull returns how long polder takes to pull a release, and its largest resident set.
func pull(ctx context.Context, ref, to string) (took time.Duration, most int64, err error) {
	begin := time.Now()
	c := exec.CommandContext(ctx, program, "stack", "pull", ref, to)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return 0, 0, err
	}
	peak := watchPeakMemory(c.Process.Pid)
	err = c.Wait()
	return time.Since(begin), <-peak, err
}

// watchPeakMemory returns the largest resident set of a process when it has ended. What wait4 returns has the set of
// the parent in it.
func watchPeakMemory(pid int) <-chan int64 {
	out := make(chan int64, 1)
	go func() {
		var most int64
		for {
			m, err := process.ReadMemory(pid, "status", "VmHWM")
			if err != nil { // a process that has ended has no memory
				out <- most
				return
			}
			most = m["VmHWM"]
			time.Sleep(time.Millisecond)
		}
	}()
	return out
}

// padded is the shipped stack with so many MiB of random bytes in an add-on, which cannot be compressed.
func padded(shipped archive.Tree, mib int) (*stack.Release, error) {
	files := archive.Tree{}
	for name, b := range shipped {
		files[name] = b
	}
	random := rand.NewChaCha8([32]byte{1})
	for i := range mib {
		b := make([]byte, 1<<20)
		if _, err := io.ReadFull(random, b); err != nil {
			return nil, err
		}
		files[fmt.Sprintf("cluster-addon/about/noise/%02d", i)] = bytes.Clone(b)
	}
	return built(files)
}
