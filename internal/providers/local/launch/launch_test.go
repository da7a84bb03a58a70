package launch

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

const uid = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

var comparePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func newCluster(uid string) hostapi.Cluster {
	return hostapi.Cluster{Namespace: "ns", Name: "c", UID: uid, Addresses: netip.MustParsePrefix("127.1.0.0/20"), Port: 6443}
}

// newLauncher keeps hosts in a folder whose path has the special characters of glob patterns.
func newLauncher(t *testing.T) Launcher {
	t.Helper()
	d := processtest.ShortDir(t, "l[1]*?")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Launcher{HostsDir: filepath.Join(d, "local"), Binary: exe}
}

// newPreparedLauncher has a cluster whose fake host behaves as mode says.
func newPreparedLauncher(t *testing.T, mode string) Launcher {
	t.Helper()
	l := newLauncher(t)
	if err := l.PrepareDir(newCluster(uid)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(l.Dir(uid)), "mode"), []byte(mode), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// start starts the host and makes sure that it ends with the test; ended closes when it does.
func start(t *testing.T, l Launcher) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{})
	if err := l.Start(uid, func() { close(ended) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid, err := filelock.Holder(l.Dir(uid).LockFile()); err == nil && pid != 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		waitForExit(t, ended)
	})
	return ended
}

func waitForExit(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the host does not end")
	}
}

func isRunning(t *testing.T, l Launcher) bool {
	t.Helper()
	running, err := l.IsRunning(uid)
	if err != nil {
		t.Fatal(err)
	}
	return running
}

func hasSocket(l Launcher) bool { _, err := os.Stat(l.Dir(uid).Socket()); return err == nil }

func TestDir(t *testing.T) {
	l := Launcher{HostsDir: "/r"}
	for uid, want := range map[string]hostapi.Dir{uid: "/r/0a1b2c3d4e5f", "u-1": "/r/u1"} {
		if got := l.Dir(uid); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPrepareDir(t *testing.T) {
	l := newLauncher(t)
	other := newCluster("ffffffffffffffff")
	for _, c := range []hostapi.Cluster{newCluster(uid), other, other} { // once more makes no difference
		if err := l.PrepareDir(c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Clusters()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]hostapi.Cluster{newCluster(uid), other}, got, comparePrefix); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]os.FileMode{l.HostsDir: 0o700, string(l.Dir(uid)): 0o700, l.Dir(uid).MachinesDir(): 0o700,
		l.Dir(uid).ClusterFile(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestClusters(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int
		err   string
	}{
		"no folder":                     {},
		"none":                          {files: map[string]string{"x/host.log": ""}},
		"something else in the folder":  {files: map[string]string{"README": "", "a/cluster.json": "{}"}, want: 1},
		"one that is being removed":     {files: map[string]string{"a/machines/x": "", "b/cluster.json": "{}"}, want: 1},
		"one that cannot be understood": {files: map[string]string{"a/cluster.json": "{"}, err: "a/cluster.json"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLauncher(t)
			for f, content := range c.files {
				f = filepath.Join(l.HostsDir, f)
				if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := l.Clusters()
			if len(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, %v; want %d, %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestStartAndStop(t *testing.T) {
	for name, atOnce := range map[string]bool{"in order": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			l := newPreparedLauncher(t, "serve")
			if isRunning(t, l) {
				t.Error("runs before it was started")
			}
			ended := start(t, l)
			processtest.Eventually(t, "it listens", func() bool { return isRunning(t, l) && hasSocket(l) })
			if err := l.Start(uid, func() { t.Error("a second one was started") }); err != nil {
				t.Error(err)
			}
			pid, _ := filelock.Holder(l.Dir(uid).LockFile())
			if sid, err := unix.Getsid(pid); err != nil || sid != pid {
				t.Errorf("it belongs to session %d, %v: it would end with us", sid, err)
			}
			if err := l.Stop(t.Context(), uid, atOnce); err != nil {
				t.Error(err)
			}
			if isRunning(t, l) {
				t.Error("still runs")
			}
			waitForExit(t, ended)
			want := map[bool]string{false: "/stop?now=false", true: "/stop?now=true"}[atOnce]
			if got, _ := os.ReadFile(filepath.Join(l.HostsDir, "asked")); string(got) != want {
				t.Errorf("it was asked %q, want %q", got, want)
			}
			if err := l.Stop(t.Context(), uid, atOnce); err != nil {
				t.Error("once more:", err)
			}
		})
	}
}

func TestStartOfAHostThatDoesNotStay(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	l := newPreparedLauncher(t, "die")
	waitForExit(t, start(t, l))
	words := l.LogTail(uid)
	if !strings.HasSuffix(words, "; last words") || !strings.HasPrefix(words, "first; environment") {
		t.Errorf("last words %q", words)
	}
	if strings.Contains(words, "s3cret") {
		t.Error("our environment was passed on")
	}
	waitForExit(t, start(t, l)) // it can be tried again, and the log goes on
	if b, _ := os.ReadFile(l.Dir(uid).LogFile()); strings.Count(string(b), "last words") != 2 {
		t.Errorf("log %q", b)
	}
}

func TestStartErrors(t *testing.T) {
	l := newPreparedLauncher(t, "serve")
	l.Binary = "/nowhere/polderd"
	if err := l.Start(uid, nil); err == nil || !strings.Contains(err.Error(), "starting the cluster's host") {
		t.Errorf("error %v", err)
	}
	if err := newLauncher(t).Start(uid, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that there is no directory", err)
	}
}

func TestStopErrors(t *testing.T) {
	for name, c := range map[string]struct{ mode, want string }{
		"it has no socket": {"deaf", "does not end"},
		"it refuses":       {"refuse", "not now"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPreparedLauncher(t, c.mode)
			start(t, l)
			processtest.Eventually(t, "it runs", func() bool { return isRunning(t, l) && (c.mode == "deaf" || hasSocket(l)) })
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			err := l.Stop(ctx, uid, true)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "process ") {
				t.Errorf("error %v, want %q and the process", err, c.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	l := newPreparedLauncher(t, "serve")
	if err := l.PrepareDir(newCluster("another")); err != nil {
		t.Fatal(err)
	}
	ended := start(t, l)
	processtest.Eventually(t, "it listens", func() bool { return isRunning(t, l) && hasSocket(l) })
	for range 2 { // once more makes no difference
		if err := l.Remove(t.Context(), uid); err != nil {
			t.Fatal(err)
		}
	}
	waitForExit(t, ended)
	if _, err := os.Stat(string(l.Dir(uid))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
	if all, err := l.Clusters(); err != nil || len(all) != 1 {
		t.Errorf("left are %v, %v", all, err)
	}
}

// A host that was just started does not hold its lock yet. It looks for the file that names its
// cluster after it took the lock, so if that file goes first, it cannot be missed.
func TestRemoveTakesTheClusterFileFirst(t *testing.T) {
	l := newPreparedLauncher(t, "deaf")
	start(t, l)
	processtest.Eventually(t, "it runs", func() bool { return isRunning(t, l) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Remove(ctx, uid); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(l.Dir(uid).ClusterFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that names the cluster is still there: %v", err)
	}
	if _, err := os.Stat(l.Dir(uid).LockFile()); err != nil {
		t.Error("a host that runs was robbed of its files:", err)
	}
}

func TestRemoveNeedsAUID(t *testing.T) {
	l := newPreparedLauncher(t, "serve")
	if err := l.Remove(t.Context(), ""); err == nil {
		t.Error("no error")
	}
	if all, err := l.Clusters(); err != nil || len(all) != 1 {
		t.Errorf("left are %v, %v", all, err)
	}
}

func TestLog(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want string
		old  bool // a new one is begun
	}{
		"empty":          {},
		"one line":       {log: "a\n", want: "a"},
		"no line end":    {log: "a\nb", want: "a; b"},
		"many lines":     {log: strings.Repeat("x\n", 1000) + "a\nb\nc\n\n", want: "a; b; c"},
		"one long line":  {log: strings.Repeat("é", maxLogTail) + "z", want: strings.Repeat("é", maxLogTail/2-1) + "z"},
		"full":           {log: strings.Repeat("0123456789", logfile.DefaultMaxBytes/10) + "\na\nb\nc", want: "a; b; c", old: true},
		"not quite full": {log: strings.Repeat("\n", logfile.DefaultMaxBytes-1) + "a", want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPreparedLauncher(t, "")
			file := l.Dir(uid).LogFile()
			if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := l.LogTail(uid); got != c.want {
				t.Errorf("last words %.100q, want %.100q", got, c.want)
			}
			f, err := openLog(file)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.WriteString("more")
			_ = f.Close()
			kept, _ := os.ReadFile(file + ".1")
			now, _ := os.ReadFile(file)
			wantKept, wantNow := "", c.log+"more"
			if c.old {
				wantKept, wantNow = c.log, "more"
			}
			if string(kept) != wantKept || string(now) != wantNow {
				t.Errorf("set aside %d bytes, now %d", len(kept), len(now))
			}
		})
	}
	if got := newLauncher(t).LogTail(uid); got != "" {
		t.Errorf("last words of nobody: %q", got)
	}
}
