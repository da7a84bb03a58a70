package partition

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// A process that is cut off is reached by nobody and reaches nobody on the port; other ports are not touched, and all is
// well when it is connected again.
func TestWatch(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	peer, other := serveEcho(t), serveEcho(t)
	port := peer.Addr().(*net.TCPAddr).Port
	old, kept := connect(t, peer), connect(t, other)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { Watch(ctx, port) })
	defer wg.Wait()
	defer cancel()
	if !speaks(old) {
		t.Fatal("a connection is cut before anybody asks for it")
	}
	mark(t, root, true)
	processtest.Eventually(t, "the old connection is cut", func() bool { return !speaks(old) })
	for range 20 {
		c, err := net.DialTimeout("tcp", peer.Addr().String(), 20*time.Millisecond)
		if err == nil {
			if speaks(c) {
				t.Error("somebody came through")
			}
			c.Close()
		}
	}
	if !speaks(kept) {
		t.Error("a connection on another port was cut")
	}
	mark(t, root, false)
	processtest.Eventually(t, "people connect again", func() bool {
		c, err := net.DialTimeout("tcp", peer.Addr().String(), time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		return speaks(c)
	})
}

// What a hostile boot has left in the machine's files leads nobody out of them.
func TestMarkStaysInside(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "run")); err != nil {
		t.Fatal(err)
	}
	if err := Mark(root, true); err == nil {
		t.Error("it was written through a link")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside there is %v", left)
	}
	if err := Mark(t.TempDir(), false); err != nil {
		t.Errorf("a machine that was never cut off: %v", err)
	}
}

// mark does what a host does.
func mark(t *testing.T, root string, on bool) {
	t.Helper()
	if err := Mark(root, on); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), Signal); err != nil {
		t.Fatal(err)
	}
}

func serveEcho(t *testing.T) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // as by Environment
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	return l
}

func connect(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// speaks says whether a line comes back.
func speaks(c net.Conn) bool {
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && line == "hello\n"
}
