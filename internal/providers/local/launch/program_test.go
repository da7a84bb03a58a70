package launch

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// TestMain runs the tests or, called as a launcher calls it, a host.
func TestMain(m *testing.M) {
	if os.Args[0] == HostProgram {
		syscall.Exit(runFakeHost(hostapi.Dir(os.Args[1]))) // os.Exit would wait for the race detector
	}
	code := m.Run()
	for _, f := range killLeftoverHosts() {
		fmt.Println("left after the tests:", f)
		code = 1
	}
	os.Exit(code)
}

// runFakeHost is a host as a launcher may meet it; the file "mode" in the directory says how it behaves.
func runFakeHost(dir hostapi.Dir) int {
	mode, _ := os.ReadFile(filepath.Join(string(dir), "mode"))
	fmt.Println("first")
	fmt.Fprintln(os.Stderr, "environment", os.Environ())
	if string(mode) == "die" {
		fmt.Println("last words")
		return 1
	}
	lock, err := filelock.Acquire(dir.LockFile())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer lock.Close()
	if string(mode) == "deaf" {
		for {
			_ = unix.Pause()
		}
	}
	l, err := net.Listen("unix", dir.Socket())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	asked := make(chan string, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if string(mode) == "refuse" {
			http.Error(w, "not now", http.StatusConflict)
			return
		}
		asked <- r.RequestURI
	})}
	go func() { _ = s.Serve(l) }()
	_ = os.WriteFile(filepath.Join(string(dir), "..", "asked"), []byte(<-asked), 0o600)
	return 0
}

// killLeftoverHosts lists, and ends, the hosts this binary has started that still run.
func killLeftoverHosts() (left []string) {
	self, _ := os.Executable()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f)
		exe, _ := os.Readlink(filepath.Dir(f) + "/exe")
		if bytes.HasPrefix(line, []byte(HostProgram+"\x00")) && exe == self {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			_ = unix.Kill(pid, unix.SIGKILL)
			left = append(left, string(line))
		}
	}
	return left
}
