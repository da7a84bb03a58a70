package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/backup/backupfile"
	"github.com/polder-kaas/polder/internal/plane/status"
)

var begin = time.Date(2026, 11, 15, 10, 15, 0, 0, time.UTC)

// newSource is a plane on disk whose store is a text.
func newSource(t *testing.T) Source {
	t.Helper()
	dir, err := os.MkdirTemp("", "backup-") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"version.json": "{}", "pki/encryption.yaml": "key", "pki/service-accounts.key": "key", "pki/.client-ca.pem.123": "half",
		"releases/sha256-1/files/a": "a", "admin.kubeconfig": "no", "status.json": "no", "etcd/member/snap/db": "no", "local/no-cluster/x": "no",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return Source{
		DataDir: dir,
		Header:  func() archive.Header { return archive.Header{CreatedAt: begin, Polder: "v1"} },
		Snapshot: func(context.Context) (*Snapshot, error) {
			w := func(w io.Writer) error { _, err := io.WriteString(w, "store"); return err }
			return &Snapshot{Revision: 7, Size: 5, Write: w, Close: func() error { return nil }}, nil
		},
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func names(m archive.Manifest) []string {
	var all []string
	for _, e := range m.Entries {
		all = append(all, e.Name)
	}
	return all
}

func TestWhatABackupHolds(t *testing.T) {
	s := newSource(t)
	for name, text := range map[string]string{
		"cluster.json": `{"namespace":"n","name":"c","uid":"abcdefabcdef"}`, "lock": "", "host.log": "log", "host.log.1": "log",
		"machines/m/machine.json": "{}", "machines/m/log/etcd.log": "log", "machines/m/root/var/lib/etcd/member/snap/db": "db",
	} {
		write(t, filepath.Join(s.DataDir, "local/abcdefabcdef", name), text)
	}
	plane := []string{
		"version.json", "pki/", "pki/encryption.yaml", "pki/service-accounts.key", "etcd/snapshot.db",
		"releases/", "releases/sha256-1/", "releases/sha256-1/files/", "releases/sha256-1/files/a",
	}
	local := []string{
		"local/abcdefabcdef/", "local/abcdefabcdef/cluster.json", "local/abcdefabcdef/machines/", "local/abcdefabcdef/machines/m/",
		"local/abcdefabcdef/machines/m/machine.json", "local/abcdefabcdef/machines/m/root/", "local/abcdefabcdef/machines/m/root/var/",
		"local/abcdefabcdef/machines/m/root/var/lib/", "local/abcdefabcdef/machines/m/root/var/lib/etcd/", "local/abcdefabcdef/machines/m/root/var/lib/etcd/member/",
		"local/abcdefabcdef/machines/m/root/var/lib/etcd/member/snap/", "local/abcdefabcdef/machines/m/root/var/lib/etcd/member/snap/db",
	}
	for _, with := range []bool{false, true} {
		var b bytes.Buffer
		m, err := s.Write(t.Context(), &b, with)
		if err != nil {
			t.Fatal(err)
		}
		want, leftOut := plane, 1
		if with {
			want, leftOut = append(plane, local...), 0
		}
		if d := cmp.Diff(want, names(m)); d != "" || m.LeftOut != leftOut || m.LocalClusters != with || m.Store.Revision != 7 {
			t.Errorf("%s %+v", d, m.Header)
		}
		if got, err := archive.Read(&b, archive.Visitor{}); err != nil || cmp.Diff(m, got) != "" {
			t.Error(err, cmp.Diff(m, got))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.DataDir, ".backup-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCopyDoesNotDependOnItsPlace(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	root := filepath.Join(from, "machines/m/root")
	pem := filepath.Join(root, "var/lib/kubelet/pki/kubelet-client-1.pem")
	write(t, pem, "cert")
	write(t, filepath.Join(root, "etc/kubernetes/kubelet.conf"), "client-key: "+root+"/var/lib/kubelet/pki/current.pem\n")
	if err := os.Symlink(pem, filepath.Join(root, "var/lib/kubelet/pki/current.pem")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(from, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := copyCluster(from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"machines/m/root/etc/kubernetes/kubelet.conf": "client-key: ../../var/lib/kubelet/pki/current.pem\n", "machines/m/root/var/lib/kubelet/pki/current.pem": "cert",
	} {
		if b, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(to, "machines/m/root/var/lib/kubelet/pki/current.pem")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "of another")
	if err := os.Symlink(secret, filepath.Join(root, "evil")); err != nil {
		t.Fatal(err)
	}
	if err := copyCluster(from, filepath.Join(t.TempDir(), "copy")); err == nil || !strings.Contains(err.Error(), "leads out of") {
		t.Errorf("a link that leads outside: %v", err)
	}
}

func TestFrozenProcessesStandStill(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	pids := []int{c.Process.Pid}
	if !hasRunningThread(pids[0]) {
		t.Error("a process that runs counts as frozen")
	}
	signal(pids, syscall.SIGSTOP)
	if err := awaitStopped(t.Context(), pids); err != nil {
		t.Fatal(err)
	}
	signal(pids, syscall.SIGCONT)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if awaitStopped(ctx, pids) != nil {
			return
		}
	}
	t.Error("a process that runs again counts as frozen")
}

// runComponent runs the component until the test ends.
func runComponent(t *testing.T, cfg Config) *Backup {
	t.Helper()
	cfg.Socket = filepath.Join(cfg.Source.DataDir, SocketName)
	cfg.Log = slog.New(slog.DiscardHandler)
	if cfg.Report == nil {
		cfg.Report = func(status.Backup) {}
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	b := New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-b.Ready()
	return b
}

func TestFetch(t *testing.T) {
	s := newSource(t)
	if _, err := Fetch(t.Context(), s.DataDir, false, io.Discard); !errors.Is(err, ErrNotServed) {
		t.Errorf("nobody serves: %v", err)
	}
	fail := errors.New("the store is on fire")
	var broken bool
	good := s.Snapshot
	s.Snapshot = func(ctx context.Context) (*Snapshot, error) {
		snap, err := good(ctx)
		if broken {
			snap.Write = func(w io.Writer) error { _, _ = io.WriteString(w, "st"); return fail }
		}
		return snap, err
	}
	b := runComponent(t, Config{Source: s})
	if info, err := os.Stat(filepath.Join(s.DataDir, SocketName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
	var out bytes.Buffer
	m, err := Fetch(t.Context(), s.DataDir, false, &out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := archive.Read(&out, archive.Visitor{}); err != nil || cmp.Diff(m, got) != "" {
		t.Error(err, cmp.Diff(m, got))
	}
	full := errors.New("the disk is full")
	if _, err := Fetch(t.Context(), s.DataDir, false, failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	b.takeTurnEventually(t)
	if _, err := Fetch(t.Context(), s.DataDir, false, io.Discard); err == nil || !strings.Contains(err.Error(), "another backup") {
		t.Errorf("two at once: %v", err)
	}
	broken = true
	b.endTurn()
	if _, err := Fetch(t.Context(), s.DataDir, false, io.Discard); err == nil || !strings.Contains(err.Error(), fail.Error()) {
		t.Errorf("a failure in the middle: %v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// takeTurnEventually waits for a backup whose reader is gone.
func (b *Backup) takeTurnEventually(t *testing.T) {
	t.Helper()
	select {
	case <-b.turn:
	case <-time.After(time.Minute):
		t.Fatal("a backup whose reader is gone does not end")
	}
}

// reports gathers what the component says.
type reports struct {
	mu   sync.Mutex
	last status.Backup
	more chan struct{}
}

func newReports() *reports { return &reports{more: make(chan struct{}, 100)} }

func (r *reports) add(s status.Backup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
	r.more <- struct{}{}
}

// await waits for a status.
func (r *reports) await(t *testing.T, what string, ok func(status.Backup) bool) status.Backup {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		s := r.last
		r.mu.Unlock()
		if ok(s) {
			return s
		}
		select {
		case <-r.more:
		case <-deadline:
			t.Fatalf("waiting until %s; now it is %+v", what, s)
		}
	}
}

// step lets time pass once the component waits for it.
func step(t *testing.T, c *clocktesting.FakeClock, d time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !c.HasWaiters(); {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
		time.Sleep(time.Millisecond)
	}
	c.Step(d)
}

func TestSchedule(t *testing.T) {
	s := newSource(t)
	dir := filepath.Join(t.TempDir(), "backups")
	c := clocktesting.NewFakeClock(begin)
	r := newReports()
	cfg := Config{
		Source: s, Clock: c, Report: r.add,
		Schedule: Schedule{Dir: dir, Every: time.Hour, Keep: 2, Keys: backupfile.Keys{Plaintext: true}},
	}
	b := runComponent(t, cfg)
	step(t, c, 0)
	for i := range 4 {
		at := begin.Add(time.Duration(i) * time.Hour)
		st := r.await(t, fmt.Sprintf("backup %d is there", i), func(s status.Backup) bool { return s.Last != nil && s.Last.CreatedAt.Equal(at) })
		if st.Problem != "" || st.Last.Size == 0 || !st.Next.Equal(at.Add(time.Hour)) || st.Dir != dir || st.Every != "1h0m0s" || st.Keep != 2 {
			t.Errorf("status: %+v", st)
		}
		step(t, c, time.Hour)
	}
	r.await(t, "the last backup is there", func(s status.Backup) bool { return s.Last != nil && s.Last.CreatedAt.Equal(begin.Add(4*time.Hour)) })
	step(t, c, 0) // it waits again, so it has removed what is too much
	all, err := backupfile.List(dir)
	if err != nil || len(all) != 2 || !all[0].CreatedAt.Equal(begin.Add(4*time.Hour)) {
		t.Errorf("kept: %v, %v", all, err)
	}
	if d := cmp.Diff(r.last, b.Status()); d != "" {
		t.Error(d)
	}
}

func TestScheduleAfterRestart(t *testing.T) {
	s := newSource(t)
	dir := t.TempDir()
	last := begin.Add(-40 * time.Minute)
	path := filepath.Join(dir, backupfile.Name(last, backupfile.Keys{}))
	write(t, path, "backup")
	write(t, filepath.Join(dir, ".polder-backup-1"), "half")
	c, r := clocktesting.NewFakeClock(begin), newReports()
	runComponent(t, Config{
		Source: s, Clock: c, Report: r.add,
		Schedule: Schedule{Dir: dir, Every: time.Hour, Keep: 9, Keys: backupfile.Keys{Plaintext: true}},
	})
	st := r.await(t, "the backup of the run before is known", func(s status.Backup) bool { return s.Last != nil })
	if st.Last.Path != path || !st.Last.CreatedAt.Equal(last) || !st.Next.Equal(begin.Add(20*time.Minute)) {
		t.Errorf("status: %+v", st)
	}
	step(t, c, 19*time.Minute)
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("too early, or something is left: %v", all)
	}
	step(t, c, time.Minute)
	r.await(t, "the next backup is there", func(s status.Backup) bool { return s.Last.CreatedAt.Equal(begin.Add(20 * time.Minute)) })
}

func TestFailingSchedule(t *testing.T) {
	s := newSource(t)
	good := s.Snapshot
	var mu sync.Mutex
	broken := true
	s.Snapshot = func(ctx context.Context) (*Snapshot, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return nil, errors.New("the store is on fire")
		}
		return good(ctx)
	}
	dir := t.TempDir()
	c, r := clocktesting.NewFakeClock(begin), newReports()
	runComponent(t, Config{
		Source: s, Clock: c, Report: r.add,
		Schedule: Schedule{Dir: dir, Every: time.Hour, Keep: 9, Keys: backupfile.Keys{Plaintext: true}},
	})
	step(t, c, 0)
	st := r.await(t, "the failure is known", func(s status.Backup) bool { return s.Problem != "" })
	if !strings.Contains(st.Problem, "on fire") || !st.FailingSince.Equal(begin) || !st.Next.Equal(begin.Add(6*time.Minute)) {
		t.Errorf("status: %+v", st)
	}
	step(t, c, 6*time.Minute)
	r.await(t, "it failed again", func(s status.Backup) bool {
		return s.Next.Equal(begin.Add(12*time.Minute)) && s.FailingSince.Equal(begin)
	})
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	step(t, c, 6*time.Minute)
	r.await(t, "it is well again", func(s status.Backup) bool { return s.Problem == "" && s.FailingSince == nil && s.Last != nil })
}

func TestBadSchedules(t *testing.T) {
	plain := backupfile.Keys{Plaintext: true}
	for name, c := range map[string]struct {
		schedule Schedule
		want     string
	}{
		"none":             {Schedule{}, ""},
		"fine":             {Schedule{Dir: "/b", Every: time.Hour, Keep: 1, Keys: plain}, ""},
		"beside":           {Schedule{Dir: "/data-backup", Every: time.Hour, Keep: 1, Keys: plain}, ""},
		"no directory":     {Schedule{Keys: plain}, "for --backup-dir, which is missing"},
		"too often":        {Schedule{Dir: "/b", Every: time.Second, Keep: 1, Keys: plain}, "too short"},
		"none kept":        {Schedule{Dir: "/b", Every: time.Hour, Keys: plain}, "choose at least 1"},
		"no key":           {Schedule{Dir: "/b", Every: time.Hour, Keep: 1}, "--backup-recipient"},
		"a bad key":        {Schedule{Dir: "/b", Every: time.Hour, Keep: 1, Keys: backupfile.Keys{Recipients: []string{"x"}}}, "no public age key"},
		"in the plane":     {Schedule{Dir: "/data/b", Every: time.Hour, Keep: 1, Keys: plain}, "is in the data directory"},
		"the plane itself": {Schedule{Dir: "/data", Every: time.Hour, Keep: 1, Keys: plain}, "is in the data directory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.schedule.Check("/data")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
