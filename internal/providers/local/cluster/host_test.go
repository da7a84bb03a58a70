package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
)

// TestMain runs the tests or, called as a host, one that ends as soon as there is no file "hang".
func TestMain(m *testing.M) {
	if os.Args[0] == launch.HostProgram {
		tick := time.NewTicker(time.Millisecond)
		for range tick.C {
			if _, err := os.Stat(filepath.Join(os.Args[1], "hang")); err != nil {
				break
			}
		}
		fmt.Println("I cannot")
		syscall.Exit(1)
	}
	os.Exit(m.Run())
}

// fixture is a reconciler with a prepared host in a short path.
func fixture(t *testing.T) (*Reconciler, *scope, hostapi.Dir) {
	t.Helper()
	d := processtest.ShortDir(t, "cluster")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Hosts: launch.Launcher{HostsDir: d, Binary: exe}, Watcher: watch.New(), Clock: clock.RealClock{}}
	s := scopeOf("u")
	if err := r.allocateAddresses(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return r, s, r.Hosts.Dir("u")
}

func serveStatus(t *testing.T, dir hostapi.Dir, code int, status hostapi.Status) {
	t.Helper()
	l, err := net.Listen("unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}

func message(s *scope) string { return conditions.Get(s.local, infrav1.HostRunningCondition).Message }

func TestHostThatAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		status hostapi.Status
		reason string
		text   string
		wait   bool
	}{
		"well":           {http.StatusOK, hostapi.Status{PID: 1}, infrav1.HostRunningReason, "", false},
		"with a problem": {http.StatusOK, hostapi.Status{PID: 1, Problem: "no endpoint"}, infrav1.HostFailedReason, "no endpoint", true},
		"nonsense":       {http.StatusTeapot, hostapi.Status{}, infrav1.HostFailedReason, "does not answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, dir := fixture(t)
			serveStatus(t, dir, c.code, c.status)
			err := r.ensureHost(t.Context(), s)
			if (err != nil) != c.wait || reason(s) != c.reason || !strings.Contains(message(s), c.text) {
				t.Errorf("error %v, %s: %s; want %s: %s", err, reason(s), message(s), c.reason, c.text)
			}
		})
	}
}

func TestHostThatEndsAtOnce(t *testing.T) {
	r, s, dir := fixture(t)
	if err := os.WriteFile(filepath.Join(string(dir), "hang"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // as long as it has not ended, it is only starting
		if err := r.ensureHost(t.Context(), s); err == nil || reason(s) != infrav1.HostStartingReason {
			t.Errorf("%d: error %v, %s: %s", i, err, reason(s), message(s))
		}
	}
	if err := os.Remove(filepath.Join(string(dir), "hang")); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "its end is noticed", func() bool { _ = r.ensureHost(t.Context(), s); return reason(s) == infrav1.HostFailedReason })
	if !strings.HasSuffix(message(s), "the cluster's host ended: I cannot") {
		t.Errorf("%s: %s", reason(s), message(s))
	}
	r.hostBackoff.Update("u", func(a startAttempt, _ bool) startAttempt {
		a.next = time.Now() // another start does not drop the reason
		return a
	})
	if err := r.ensureHost(t.Context(), s); err == nil || reason(s) != infrav1.HostFailedReason {
		t.Errorf("error %v, %s: %s", err, reason(s), message(s))
	}
	processtest.Eventually(t, "it ended", func() bool { _, ended := r.hostBackoff.reserveStart("u", time.Now()); return ended })
}

// A host that is ending, or loads its machines, holds the lock but does not answer.
func TestHostThatIsThereButDoesNotAnswerYet(t *testing.T) {
	r, s, dir := fixture(t)
	lock, err := filelock.Acquire(dir.LockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := r.ensureHost(t.Context(), s); err == nil || reason(s) != infrav1.HostStartingReason {
		t.Errorf("error %v, %s: %s", err, reason(s), message(s))
	}
	if a, tried := r.hostBackoff.Load("u"); tried {
		t.Errorf("another host was started: %+v", a)
	}
}

func TestBackoffIsResetByAStableHost(t *testing.T) {
	for name, c := range map[string]struct {
		up   time.Duration
		want bool
	}{"just started": {0, true}, "for long": {time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			r, s, dir := fixture(t)
			r.hostBackoff.reserveStart("u", time.Now())
			serveStatus(t, dir, http.StatusOK, hostapi.Status{PID: 1, StartedAt: time.Now().Add(-c.up)})
			err := r.ensureHost(t.Context(), s)
			if _, remembered := r.hostBackoff.Load("u"); err != nil || remembered != c.want {
				t.Errorf("error %v, remembered: %t", err, remembered)
			}
		})
	}
}

func TestRemoveHost(t *testing.T) {
	r, s, dir := fixture(t)
	s.local.Finalizers = []string{infrav1.ClusterFinalizer, "another"}
	r.hostBackoff.reserveStart("u", time.Now())
	r.Watcher.WatchHost(s.local, dir)
	if err := r.removeHost(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"another"}, s.local.Finalizers); d != "" {
		t.Error(d)
	}
	_, err := os.Stat(string(dir))
	if _, remembered := r.hostBackoff.Load("u"); err == nil || remembered {
		t.Errorf("left are the directory (%v) or what was remembered: %t", err, remembered)
	}
}

func TestRemoveHostThatStays(t *testing.T) {
	r, s, dir := fixture(t)
	s.local.Finalizers = []string{infrav1.ClusterFinalizer}
	lock, err := filelock.Acquire(dir.LockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	serveStatus(t, dir, http.StatusConflict, hostapi.Status{})
	if err := r.removeHost(t.Context(), s); err == nil || len(s.local.Finalizers) != 1 {
		t.Errorf("error %v, finalizers %v", err, s.local.Finalizers)
	}
	if reason(s) != infrav1.HostDeletingReason || !strings.Contains(message(s), "process") {
		t.Errorf("%s: %s", reason(s), message(s))
	}
}

func TestMarkProvisioned(t *testing.T) {
	s := scopeOf("u")
	s.local.Spec.FailureDomains = []infrav1.FailureDomain{{Name: "a"}, {Name: "b", ControlPlane: ptr.To(false)}, {Name: "c", ControlPlane: ptr.To(true)}}
	s.local.Status.FailureDomains = []clusterv1.FailureDomain{{Name: "old"}}
	for range 2 {
		if err := markProvisioned(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	want := []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true)}, {Name: "b", ControlPlane: ptr.To(false)}, {Name: "c", ControlPlane: ptr.To(true)}}
	if d := cmp.Diff(want, s.local.Status.FailureDomains); d != "" || !ptr.Deref(s.local.Status.Initialization.Provisioned, false) {
		t.Errorf("provisioned %v, %s", s.local.Status.Initialization.Provisioned, d)
	}
}

func TestSummarize(t *testing.T) {
	s := scopeOf("u")
	s.setHostRunning("False", infrav1.HostFailedReason, "why")
	s.summarize()
	c := conditions.Get(s.local, infrav1.ReadyCondition)
	if c.Status != "False" || c.Reason != infrav1.HostFailedReason || c.Message != "why" || c.ObservedGeneration != 3 {
		t.Errorf("%+v", c)
	}
}
