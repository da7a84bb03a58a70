package confine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// The test binary is every program: started as one of these, it confines itself, tries what it must not be able to do,
// and prints what came of it.
const (
	hostName      = "test-host"
	componentName = "test-component"
	childName     = "test-child" // of a host; it does nothing
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case childName:
		os.Exit(0)
	case hostName:
		os.Exit(tryAll(Host, os.Args[1:]))
	case componentName:
		os.Exit(tryAll(Component, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// canaries are what must not be touched.
type canaries struct {
	Dir    string `json:"dir"`  // the process's own
	File   string `json:"file"` // one outside
	Socket string `json:"socket"`
	TCP    string `json:"tcp"` // a listener of the computer's
	PID    int    `json:"pid"` // of another process
}

// attempts are what is tried; each must fail, but for those that begin with "may".
func attempts(c canaries) map[string]func() error {
	return map[string]func() error{
		"may read its own":       func() error { _, err := os.ReadFile(filepath.Join(c.Dir, "own")); return err },
		"may write its own":      func() error { return os.WriteFile(filepath.Join(c.Dir, "new"), nil, 0o600) },
		"may listen":             func() error { l, err := net.Listen("tcp", "127.0.0.1:0"); return errors.Join(err, closeIf(l)) },
		"may write to nowhere":   func() error { return os.WriteFile(nullFile, []byte("x"), 0) },
		"may start a thread":     func() error { done := make(chan error); go func() { done <- nil }(); return <-done },
		"read a file":            func() error { _, err := os.ReadFile(c.File); return err },
		"write a file":           func() error { return os.WriteFile(c.File, []byte("x"), 0o600) },
		"truncate a file":        func() error { return os.Truncate(c.File, 0) },
		"list a folder":          func() error { _, err := os.ReadDir(filepath.Dir(c.File)); return err },
		"list the root":          func() error { _, err := os.ReadDir("/"); return err },
		"link to a file":         func() error { return os.Link(c.File, filepath.Join(c.Dir, "link")) },
		"read through a symlink": func() error { return readThroughSymlink(c) },
		"read by ..": func() error {
			_, err := os.ReadFile(c.Dir + "/../" + filepath.Base(filepath.Dir(c.File)) + "/file")
			return err
		},
		"read the environment of another process": func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID)); return err },
		"read files of another process":           func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", c.PID, c.File)); return err },
		"write the memory of another process":     func() error { return os.WriteFile(fmt.Sprintf("/proc/%d/mem", c.PID), []byte("x"), 0) },
		"connect to a socket":                     func() error { conn, err := net.Dial("unix", c.Socket); return errors.Join(err, closeIf(conn)) },
		"run a shell":                             func() error { return exec.Command("/bin/sh", "-c", "true").Run() },
		"trace":                                   func() error { return unix.PtraceAttach(c.PID) },
		"signal another process":                  func() error { return unix.Kill(c.PID, unix.SIGUSR1) },
		"new namespaces":                          func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"mount":                                   func() error { return unix.Mount("x", c.Dir, "tmpfs", 0, "") },
		"keys":                                    func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
		"a program in the kernel":                 func() error { _, _, errno := unix.Syscall(unix.SYS_BPF, 0, 0, 0); return onlyDenied(errno) },
		"a ring":                                  func() error { _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); return onlyDenied(errno) },
		"a file in memory":                        func() error { _, err := unix.MemfdCreate("x", 0); return err },
		"a device":                                func() error { return unix.Mknod(filepath.Join(c.Dir, "null"), unix.S_IFCHR, 0) },
	}
}

// componentAttempts are what a host may do and a component may not.
func componentAttempts() map[string]func() error {
	return map[string]func() error{
		"run itself": func() error { return runChild() },
		"a unix socket": func() error {
			s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return errors.Join(err, closeFD(s, err))
		},
		"a vsock": func() error {
			s, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
			return errors.Join(err, closeFD(s, err))
		},
		"watch files": func() error {
			w, err := unix.InotifyInit1(0)
			return errors.Join(err, closeFD(w, err))
		},
		"signal its parent":     func() error { return unix.Kill(os.Getppid(), 0) },
		"signal its group":      func() error { return unix.Kill(0, 0) },
		"may signal itself":     func() error { return unix.Kill(os.Getpid(), 0) },
		"read about the parent": func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getppid())); return err },
	}
}

// namespaceAttempts are what a process in a network of its own cannot do.
func namespaceAttempts(c canaries) map[string]func() error {
	return map[string]func() error{
		"connect to the computer": func() error { conn, err := net.Dial("tcp", c.TCP); return errors.Join(err, closeIf(conn)) },
		"may run itself":          func() error { return runChild() },
	}
}

func runChild() error {
	c := exec.Command(selfProgram)
	c.Args = []string{childName}
	return c.Run()
}

func readThroughSymlink(c canaries) error {
	link := filepath.Join(c.Dir, "symlink")
	if err := os.Symlink(c.File, link); err != nil {
		return err
	}
	_, err := os.ReadFile(link)
	return err
}

// onlyDenied keeps no other errors: those would say that the call was made.
func onlyDenied(errno unix.Errno) error {
	if errno == unix.EPERM {
		return errno
	}
	return nil
}

func closeIf(c interface{ Close() error }) error {
	if c == nil {
		return nil
	}
	_ = c.Close()
	return nil
}

func closeFD(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return nil
}

// tryAll confines this process and prints the attempts that ended otherwise than they should.
func tryAll(p Program, args []string) int {
	var c canaries
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		fmt.Println(err)
		return 1
	}
	have, err := Enter(p, c.Dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	all := []map[string]func() error{attempts(c)}
	if p == Component {
		all = append(all, componentAttempts())
	}
	if have.Namespaces {
		all = append(all, namespaceAttempts(c))
	}
	for resource, want := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: maxData, unix.RLIMIT_FSIZE: maxFileSize} {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil || l.Max != want || l.Cur != want {
			fmt.Printf("limit %d is %d, want %d\n", resource, l.Max, want)
		}
	}
	tried := 0
	for _, list := range all {
		for name, try := range list {
			tried++
			if err := try(); (err == nil) != strings.HasPrefix(name, "may ") {
				fmt.Printf("%s: %v\n", name, err)
			}
		}
	}
	fmt.Printf("%d attempts, confined by %s\n", tried, have)
	return 0
}

// start runs this binary under another name and returns what it printed.
func start(t *testing.T, name string, c canaries, change func(*exec.Cmd)) string {
	t.Helper()
	arg, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	var out bytes.Buffer
	cmd.Args, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = []string{name, string(arg)}, c.Dir, &out, &out, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	change(cmd)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	return out.String()
}

// newCanaries makes files, sockets and a process that nobody confined may touch.
func newCanaries(t *testing.T) canaries {
	t.Helper()
	root, err := os.MkdirTemp("", "confine-") // its path is short, as that of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	c := canaries{Dir: filepath.Join(root, "own"), File: filepath.Join(root, "outside", "file"), Socket: filepath.Join(root, "outside", "sock")}
	for _, d := range []string{c.Dir, filepath.Dir(c.File)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{c.File, filepath.Join(c.Dir, "own")} {
		if err := os.WriteFile(f, []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for network, address := range map[string]string{"unix": c.Socket, "tcp": "127.0.0.1:0"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if network == "tcp" {
			c.TCP = l.Addr().String()
		}
	}
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	c.PID = sleeper.Process.Pid
	t.Cleanup(func() {
		if b, err := os.ReadFile(c.File); string(b) != "canary" {
			t.Errorf("the canary is %q, %v", b, err)
		}
	})
	return c
}

func verify(t *testing.T, out string) {
	t.Helper()
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 1 {
		t.Errorf("some attempts ended otherwise:\n%s", out)
	}
	t.Log(out)
}

func TestComponentIsConfined(t *testing.T) {
	c := newCanaries(t)
	verify(t, start(t, componentName, c, func(*exec.Cmd) {}))
}

func TestHostIsConfined(t *testing.T) {
	c := newCanaries(t)
	verify(t, start(t, hostName, c, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, namespacesVariable+"=1")
		setNamespaces(cmd.SysProcAttr)
	}))
}

// What a host has opened is what its people reach, wherever the host is.
func TestPrepareHost(t *testing.T) {
	dir := hostapi.Dir(t.TempDir())
	cluster := `{"namespace":"n","name":"c","uid":"u","addresses":"127.77.16.0/20","port":47443}`
	if err := os.WriteFile(dir.ClusterFile(), []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{SysProcAttr: &syscall.SysProcAttr{}}
	release, err := PrepareHost(cmd, dir, hostapi.Confinement{Namespaces: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(cmd.ExtraFiles) != 1 || cmd.SysProcAttr.Cloneflags&unix.CLONE_NEWNET == 0 {
		t.Errorf("the command is %+v", cmd)
	}
	if _, err := PrepareHost(&exec.Cmd{SysProcAttr: &syscall.SysProcAttr{}}, dir, hostapi.Confinement{Namespaces: true}); !errors.Is(err, ErrEndpoint) {
		t.Errorf("an endpoint that is taken: %v", err)
	}
	release()
	plain := &exec.Cmd{SysProcAttr: &syscall.SysProcAttr{}}
	if _, err := PrepareHost(plain, dir, hostapi.Confinement{}); err != nil || len(plain.ExtraFiles) != 0 || plain.SysProcAttr.Cloneflags != 0 {
		t.Errorf("without namespaces: %+v, %v", plain, err)
	}
}
