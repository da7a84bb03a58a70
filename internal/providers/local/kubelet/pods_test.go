package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func TestManifestAppearsChangesAndGoes(t *testing.T) {
	k := newKubelet(t)
	syncPods(t, k)
	if all, _, _ := k.Status(); len(all) > 0 {
		t.Errorf("without manifests there is %v", all)
	}
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	syncPods(t, k)
	first := waitUntilRunning(t, k, "etcd")
	syncPods(t, k)
	if got := processStatus(k, "etcd").PID; got != first {
		t.Errorf("process %d became %d though nothing changed", first, got)
	}
	writeManifest(t, k, "etcd", manifestOf("etcd", 0, "--changed"))
	syncPods(t, k)
	second := waitUntilRunning(t, k, "etcd")
	if second == first || processtest.IsAlive(first) {
		t.Errorf("process %d, now %d, still alive: %t", first, second, processtest.IsAlive(first))
	}
	if d := cmp.Diff([]string{"etcd", "--changed"}, processStatus(k, "etcd").Command); d != "" {
		t.Error(d)
	}
	writeManifest(t, k, "etcd", "")
	syncPods(t, k)
	if all, _, _ := k.Status(); len(all) > 0 || processtest.IsAlive(second) {
		t.Errorf("status %v, still alive: %t", all, processtest.IsAlive(second))
	}
}

func TestBrokenManifestsTakeNothingDown(t *testing.T) {
	good := manifestOf("etcd", 0)
	for name, c := range map[string]struct{ content, refused string }{
		"just being written":  {content: "", refused: ""},
		"half of one":         {content: "apiVersion: v1\nmetadata: {name: etcd", refused: "etcd.yaml cannot be read"},
		"no container":        {content: "metadata: {name: etcd}", refused: "no container"},
		"not a pod":           {content: "[]", refused: "etcd.yaml cannot be read"},
		"a name with a path":  {content: strings.Replace(good, "name: etcd", "name: ../../etcd", 1), refused: "none that Kubernetes takes"},
		"no name":             {content: strings.Replace(good, "name: etcd, ", "", 1), refused: "none that Kubernetes takes"},
		"a file without read": {content: "unreadable", refused: "etcd.yaml cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			writeManifest(t, k, "etcd", good)
			syncPods(t, k)
			first := waitUntilRunning(t, k, "etcd")
			file := filepath.Join(k.pods.manifestDir(), "etcd.yaml")
			if c.content == "unreadable" { // even for root
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(file, 0o700); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			syncPods(t, k)
			if got := processStatus(k, "etcd").PID; got != first {
				t.Errorf("process %d became %d", first, got)
			}
			refused := strings.Join(k.NotHonored(), "; ")
			if (refused == "") != (c.refused == "") || !strings.Contains(refused, c.refused) {
				t.Errorf("refused %q, want %q", refused, c.refused)
			}
			_ = os.RemoveAll(file)
			writeManifest(t, k, "etcd", good)
			syncPods(t, k)
			if got := processStatus(k, "etcd").PID; got != first || len(k.NotHonored()) > 0 {
				t.Errorf("whole again: process %d became %d, refused %q", first, got, k.NotHonored())
			}
		})
	}
}

func TestManifestsThatCannotBeRun(t *testing.T) {
	k := newKubelet(t)
	changes := 0
	k.pods.onChange = func() { changes++ }
	writeManifest(t, k, "a-nginx", strings.ReplaceAll(manifestOf("nginx", 0), "command: [nginx]", "command: [/bin/nginx]"))
	writeManifest(t, k, "etcd", manifestOf("etcd", 0)+`  volumes: [{name: v, hostPath: {path: ../../../outside, type: DirectoryOrCreate}}]`+"\n")
	if err := os.WriteFile(filepath.Join(k.pods.manifestDir(), "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	syncPods(t, k)
	refused := strings.Join(k.NotHonored(), "\n")
	if !strings.Contains(refused, "static pod nginx runs") || !strings.Contains(refused, "static pod etcd has a volume that is not on the machine") ||
		len(k.NotHonored()) != 2 {
		t.Errorf("refused %q", refused)
	}
	if _, err := os.Stat(filepath.Join(string(k.cfg.Dir), "..", "outside")); err == nil {
		t.Error("a folder was made outside of the machine")
	}
	before := changes
	writeManifest(t, k, "a-nginx", "")
	writeManifest(t, k, "etcd", "")
	syncPods(t, k)
	if len(k.NotHonored()) > 0 || changes == before {
		t.Errorf("they are gone, but refused are %q, and %d changes were told", k.NotHonored(), changes-before)
	}
}

func TestControllersWaitForTheAPIServer(t *testing.T) {
	k := newKubelet(t)
	sick := filepath.Join(t.TempDir(), "sick")
	if err := os.WriteFile(sick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, k, "s", manifestOf("kube-scheduler", 0))
	writeManifest(t, k, "a", apiServerManifest(t, "--sick="+sick))
	syncPods(t, k)
	waitUntilRunning(t, k, apiServer)
	if s := processStatus(k, "kube-scheduler"); s.PID != 0 || s.Ready || k.IsServing() {
		t.Errorf("the scheduler is %+v, serving: %t", s, k.IsServing())
	}
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	waitUntilRunning(t, k, "kube-scheduler")
	if !k.IsServing() || !processStatus(k, apiServer).Ready {
		t.Error("the scheduler came before the API server")
	}
	if err := os.WriteFile(sick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it is noticed that the API server fails", func() bool { return !k.IsServing() })
	if s := processStatus(k, "kube-scheduler"); s.PID == 0 {
		t.Error("the scheduler was ended")
	}
}

func TestEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want uint16
	}{
		"its own port": {[]string{"--secure-port=7443"}, 7443},
		"the last one": {[]string{"--secure-port=7443", "--secure-port=8443"}, 8443},
		"none":         {nil, 6443},
		"nonsense":     {[]string{"--secure-port=x"}, 6443},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			k.pods.running[apiServer] = &staticPod{spec: specWith(c.args)}
			if got := k.Endpoint(); got.Port() != c.want || got.Addr() != testAddress() {
				t.Errorf("%s, want port %d", got, c.want)
			}
			clear(k.pods.running)
		})
	}
}

func TestProcessThatEnds(t *testing.T) {
	for name, port := range map[string]bool{"with a probe": true, "that cannot be asked": false} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			writeManifest(t, k, "a", apiServerManifest(t))
			if !port {
				writeManifest(t, k, "a", manifestOf(apiServer, 0))
			}
			syncPods(t, k)
			processtest.Eventually(t, "it is ready", func() bool { return processStatus(k, apiServer).Ready })
			first := processStatus(k, apiServer)
			if err := unix.Kill(first.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			processtest.Eventually(t, "its end is noticed", func() bool { s := processStatus(k, apiServer); return s.PID == 0 && !s.Ready && !k.IsServing() })
			processtest.Eventually(t, "it is back", func() bool { s := processStatus(k, apiServer); return s.Ready && s.PID != 0 && s.PID != first.PID })
			if s := processStatus(k, apiServer); s.Restarts != 1 || !strings.HasPrefix(s.LastExit, "was ended by SIGKILL") {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestProcessThatFails(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 0, "--exit=3"))
	syncPods(t, k)
	var s hostapi.ProcessStatus
	processtest.Eventually(t, "it failed", func() bool { s = processStatus(k, "etcd"); return s.LastExit != "" })
	if !strings.HasPrefix(s.LastExit, "exited with code 3") || s.Ready || s.Log != k.cfg.Dir.LogFile("etcd") {
		t.Errorf("%+v", s)
	}
	if d := cmp.Diff([]string{"started as etcd", "cannot go on"}, s.Output); d != "" {
		t.Error(d)
	}
}

func TestStopOrder(t *testing.T) {
	k := newKubelet(t)
	order := filepath.Join(t.TempDir(), "order")
	writeManifest(t, k, "a", apiServerManifest(t, "--order="+order))
	for _, name := range []string{"etcd", "kube-scheduler", "kube-controller-manager"} {
		writeManifest(t, k, name, manifestOf(name, 0, "--order="+order))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.pods.run(ctx) }()
	var pids []int
	for _, name := range []string{"etcd", apiServer, "kube-scheduler", "kube-controller-manager"} {
		pids = append(pids, waitUntilRunning(t, k, name))
		processtest.Eventually(t, name+" hears", func() bool { b, _ := os.ReadFile(k.cfg.Dir.LogFile(name)); return len(b) > 0 })
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	b, _ := os.ReadFile(order)
	got := strings.Fields(string(b))
	if len(got) != 4 || got[2] != apiServer || got[3] != "etcd" {
		t.Errorf("ended in the order %q", got)
	}
	for _, pid := range pids {
		if processtest.IsAlive(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if k.IsServing() {
		t.Error("serving")
	}
}

func TestDrain(t *testing.T) {
	k := newKubelet(t)
	wait := filepath.Join(t.TempDir(), "wait")
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	writeManifest(t, k, "a", apiServerManifest(t, "--wait="+wait))
	syncPods(t, k)
	processtest.Eventually(t, "it serves", k.IsServing)
	store := waitUntilRunning(t, k, "etcd")
	if k.IsDraining() {
		t.Error("draining before it was asked to")
	}
	k.pods.mu.Lock()
	k.pods.drained = true // what is asked for counts at once
	k.pods.mu.Unlock()
	if k.IsServing() || !k.IsDraining() {
		t.Errorf("serving: %t, draining: %t", k.IsServing(), k.IsDraining())
	}
	drained := make(chan struct{})
	go func() { defer close(drained); k.Drain() }()
	processtest.Eventually(t, "it drains", func() bool { return k.IsDraining() && !k.IsServing() })
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	<-drained
	k.Drain() // once more makes no difference
	if s := processStatus(k, apiServer); s.PID != 0 || s.Ready || k.IsDraining() || k.IsServing() {
		t.Errorf("%+v, draining: %t, serving: %t", s, k.IsDraining(), k.IsServing())
	}
	writeManifest(t, k, "a", apiServerManifest(t)) // a new manifest does not bring it back
	syncPods(t, k)
	syncPods(t, k)
	if s := processStatus(k, apiServer); s.PID != 0 || processStatus(k, "etcd").PID != store {
		t.Errorf("%+v, etcd %d became %d", s, store, processStatus(k, "etcd").PID)
	}
}

func TestKillIsForGood(t *testing.T) {
	k := newKubelet(t)
	wait := filepath.Join(t.TempDir(), "wait")
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, k, "etcd", manifestOf("etcd", 0, "--wait="+wait)) // would not end by itself
	writeManifest(t, k, "s", manifestOf("kube-scheduler", 0))          // waits to be started
	syncPods(t, k)
	pid := waitUntilRunning(t, k, "etcd")
	begin := time.Now()
	k.Kill()
	if took := time.Since(begin); took > stopGracePeriod/2 || processtest.IsAlive(pid) {
		t.Errorf("took %s, still alive: %t", took, processtest.IsAlive(pid))
	}
	writeManifest(t, k, "etcd", manifestOf("etcd", 0, "--new"))
	syncPods(t, k)
	if s := processStatus(k, "etcd"); s.Name != "" {
		t.Errorf("a new one was started: %+v", s)
	}
	if err := k.pods.run(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"etcd", "kube-scheduler"} {
		if s := processStatus(k, name); s.PID != 0 || s.Ready {
			t.Errorf("after the plug was pulled: %+v", s)
		}
	}
}

func TestKillWhilePodsAreStarted(t *testing.T) {
	for range 10 {
		k := newKubelet(t)
		done := make(chan struct{})
		writeManifest(t, k, "etcd", manifestOf("etcd", 0))
		go func() { defer close(done); _ = k.pods.sync() }()
		k.Kill()
		<-done
		if s := processStatus(k, "etcd"); s.PID != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

// The folder is watched: a manifest that is written is run at once, and the loss of the folder is
// survived.
func TestRunFollowsTheFolder(t *testing.T) {
	k := newKubelet(t)
	k.pods.checkInterval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.runWithRetry(ctx, "static pods", k.pods.run) }()
	defer func() { cancel(); <-done }()
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	first := waitUntilRunning(t, k, "etcd")
	if err := os.RemoveAll(k.pods.manifestDir()); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it ends with its manifest", func() bool { return !processtest.IsAlive(first) })
	processtest.Eventually(t, "there is a folder again", func() bool { _, err := os.Stat(k.pods.manifestDir()); return err == nil })
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	waitUntilRunning(t, k, "etcd")
	processtest.Eventually(t, "there is no problem any more", func() bool { _, _, problem := k.Status(); return problem == "" })
}

// A machine that is stopped before it has started anything starts nothing.
func TestRunOfAMachineThatEnds(t *testing.T) {
	k := newKubelet(t)
	writeManifest(t, k, "etcd", manifestOf("etcd", 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.pods.run(ctx); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(k.cfg.Dir.LogFile("etcd")); len(b) > 0 || len(k.pods.list()) > 0 {
		t.Errorf("it has run: %s", b)
	}
}
