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

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// pulls measures the memory of polder while it pulls a small release and one of nearly 32 MiB, the most that is
// accepted.
func pulls(ctx context.Context, shipped archive.Tree) error {
	server := httptest.NewServer(ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/stacks"
	dir, err := os.MkdirTemp("", "polder-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	fmt.Println()
	for _, mib := range []int{0, 30} {
		r, err := padded(shipped, mib)
		if err != nil {
			return err
		}
		store, _, err := registry.Open(ctx, ref, registry.Options{})
		if err != nil {
			return err
		}
		if _, err := store.Publish(ctx, r); err != nil {
			return err
		}
		start := time.Now()
		c := exec.CommandContext(ctx, program, "stack", "pull", ref+":"+r.Name.Tag(), filepath.Join(dir, "out"))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			return err
		}
		most := watch(c.Process.Pid)
		if err := c.Wait(); err != nil {
			return err
		}
		fmt.Printf("polder stack pull of a release of %.1f MiB: %s, at most %d MiB of memory\n", float64(r.Files.Size())/(1<<20), ms(time.Since(start)), <-most>>10)
	}
	return nil
}

// watch returns the largest resident set of a process, in KiB, when it has ended. What wait4 returns has the set of the
// parent in it.
func watch(pid int) <-chan int {
	out := make(chan int, 1)
	go func() {
		most := 0
		for {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, found := strings.Cut(string(b), "VmHWM:")
			if err != nil || !found { // a process that has ended has no memory
				out <- most
				return
			}
			if _, err := fmt.Sscan(rest, &most); err != nil {
				most = -1
			}
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
