package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

const (
	programVar = "POLDER_TEST_PROGRAM" // which program the test binary is to be
	runVar     = "POLDER_TEST_RUN"     // marks all that descends from one run of the tests
)

// TestMain runs the tests, or one of the programs they supervise.
func TestMain(m *testing.M) {
	if name := os.Getenv(programVar); name != "" {
		runFakeProgram(name, os.Args[1:])
		os.Exit(0)
	}
	os.Setenv(runVar, strconv.Itoa(os.Getpid()))
	code := m.Run()
	if left := killLeftovers(); len(left) > 0 {
		fmt.Println("left after the tests:", left)
		code = 1
	}
	os.Exit(code)
}

// runFakeProgram is what the test binary does when a test starts it.
func runFakeProgram(name string, args []string) {
	switch name {
	case "say": // exits with the code of its first argument after the others were printed
		code, _ := strconv.Atoi(args[0])
		fmt.Print(strings.Join(args[1:], "\n"))
		os.Exit(code)
	case "show": // prints how it was started
		dir, _ := os.Getwd()
		in, _ := io.ReadAll(os.Stdin)
		fmt.Printf("argv %v\ndir %s\nstdin %q\nleads %t\n", os.Args, dir, in, unix.Getpgrp() == os.Getpid())
		fmt.Fprintln(os.Stderr, "env", os.Environ())
	case "count":
		n, _ := strconv.Atoi(args[0])
		for i := range n {
			fmt.Printf("line %06d\n", i)
		}
		waitForever()
	case "flood": // prints a good many bytes and exits
		for range 8 << 10 {
			fmt.Printf("%1023d\n", 0)
		}
	case "answer": // prints a line for each SIGUSR1
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGUSR1)
		fmt.Println("ready")
		for range signals {
			fmt.Println("answer")
		}
	case "stubborn":
		signal.Ignore(unix.SIGTERM)
		fmt.Println("ready", os.Getpid())
		waitForever()
	case "family": // has a stubborn child
		startChild(&syscall.SysProcAttr{})
		waitForever()
	case "orphan": // leaves a stubborn child that is out of its group
		startChild(&syscall.SysProcAttr{Setsid: true})
		waitForever()
	case "supervisor":
		f := NewForker()
		Start(f, testSpec(args[0], "stubborn"), nil)
		waitForever()
	}
}

// waitForever returns only by a signal that ends the program.
func waitForever() {
	for {
		_ = unix.Pause()
	}
}

func startChild(attr *syscall.SysProcAttr) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), programVar+"=stubborn")
	c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := c.Start(); err != nil {
		fmt.Println("no child:", err)
	}
}

// testSpec runs one of the programs above, with a log in dir.
func testSpec(dir, name string, args ...string) Spec {
	exe, _ := os.Executable()
	return Spec{
		Name: name,
		Path: exe,
		Args: append([]string{name}, args...),
		Dir:  "/",
		Env:  []string{programVar + "=" + name, runVar + "=" + os.Getenv(runVar), "GORACE=atexit_sleep_ms=0"},
		Log:  logfile.File{Path: filepath.Join(dir, "log")},
	}
}

// killLeftovers lists what still runs of this run's programs, and ends it; also our own zombies.
func killLeftovers() (left []string) {
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		left = append(left, fmt.Sprintf("child or zombie of ours (%d)", pid))
	}
	mark := []byte(runVar + "=" + strconv.Itoa(os.Getpid()))
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if pid == os.Getpid() || !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, mark) }) {
			continue
		}
		left = append(left, f)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return left
}

// readLogLines returns the complete lines of the log with those that were set aside, oldest first.
func readLogLines(l logfile.File) (lines []string) {
	for _, path := range []string{l.Path + ".2", l.Path + ".1", l.Path} {
		b, _ := os.ReadFile(path)
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			lines = append(lines, s.Text())
		}
	}
	return lines
}

// readyPID waits for a stubborn program to be ready and returns its PID.
func readyPID(t *testing.T, l logfile.File) (pid int) {
	t.Helper()
	processtest.Eventually(t, "the program is ready", func() bool {
		return slices.ContainsFunc(readLogLines(l), func(s string) bool {
			n, err := fmt.Sscanf(s, "ready %d", &pid)
			return n == 1 && err == nil
		})
	})
	return pid
}
