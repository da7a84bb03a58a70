package kubelet

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/process"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// runVar marks all that descends from one run of the tests.
const runVar = "POLDER_TEST_RUN"

// TestMain runs the tests or, called by the name of a part of the control plane, a stand-in for it.
func TestMain(m *testing.M) {
	if slices.Contains([]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}, os.Args[0]) {
		runFakeProgram()
		syscall.Exit(0) // os.Exit would wait for the race detector
	}
	os.Setenv(runVar, strconv.Itoa(os.Getpid()))
	code := m.Run()
	for _, p := range killLeftovers() {
		fmt.Println("left after the tests:", p)
		code = 1
	}
	os.Exit(code)
}

// runFakeProgram serves on --secure-port, if there is one, until it is asked to end; then it writes its
// name into --order and ends when there is no file --wait (any more).
func runFakeProgram() {
	flags := map[string]string{}
	for _, a := range os.Args[1:] {
		k, v, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[k] = v
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM)
	fmt.Println("started as", os.Args[0])
	if code, err := strconv.Atoi(flags["exit"]); err == nil {
		fmt.Println("cannot go on")
		syscall.Exit(code)
	}
	if port := flags["secure-port"]; port != "" {
		l, err := net.Listen("tcp", flags["bind-address"]+":"+port)
		if err != nil {
			fmt.Println(err)
			syscall.Exit(1)
		}
		go func() { _ = http.Serve(l, http.HandlerFunc(healthHandler(flags["sick"]))) }()
	}
	<-asked
	if f, err := os.OpenFile(flags["order"], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, os.Args[0])
		_ = f.Close()
	}
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(flags["wait"]); err != nil {
			return
		}
	}
}

// healthHandler fails as long as there is a file sick.
func healthHandler(sick string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(sick); err == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
}

// killLeftovers lists what still runs of this run's programs, and ends it.
func killLeftovers() (left []string) {
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

// testAddress is an address that no other run of tests uses.
func testAddress() netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, 91, byte(pid >> 8), byte(1 + pid%250)})
}

// freePort is a port of testAddress that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(testAddress(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// newKubelet makes the kubelet of a control-plane machine whose files are in a new directory.
func newKubelet(t *testing.T) *Kubelet {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	forker := process.NewForker()
	t.Cleanup(forker.Close)
	watcher, err := NewManifestWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	dir := hostapi.MachineDir(t.TempDir())
	if err := os.MkdirAll(dir.RootFS("/etc/kubernetes/manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := New(Config{
		Machine: hostapi.MachineSpec{Name: "m", Node: "node-1", UID: "u", ControlPlane: true, Version: "v1.36.1", ProviderID: "local://ns/c/m"},
		Dir:     dir, Address: testAddress(), AllowEverything: true, Binary: exe, Forker: forker, Watcher: watcher,
		OnChange: func() {}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(k.Kill) // before the forker is closed
	return k
}

// manifestOf is a static pod of one of our programs; a readiness probe asks port, if it is not 0.
func manifestOf(name string, port int, args ...string) string {
	y := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: kube-system, labels: {tier: control-plane}}
spec:
  containers:
  - name: %s
    image: example/%s:v1
    command: [%s]
    env: [{name: %s, value: %q}]
`, name, name, name, strings.Join(append([]string{name}, args...), ", "), runVar, os.Getenv(runVar))
	if port != 0 {
		y += fmt.Sprintf("    ports: [{name: probe-port, containerPort: %d}]\n    readinessProbe: {httpGet: {path: /readyz, port: probe-port, scheme: HTTP}}\n", port)
	}
	return y
}

// apiServerManifest is an API server that becomes ready.
func apiServerManifest(t *testing.T, args ...string) string {
	t.Helper()
	port := freePort(t)
	return manifestOf(apiServer, port, append(args, fmt.Sprintf("--secure-port=%d", port))...)
}

// writeManifest puts a manifest where the kubelet looks for it; an empty one removes it.
func writeManifest(t *testing.T, k *Kubelet, name, content string) {
	t.Helper()
	file := filepath.Join(k.pods.manifestDir(), name+".yaml")
	if content == "" {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func syncPods(t *testing.T, k *Kubelet) {
	t.Helper()
	if err := k.pods.sync(); err != nil {
		t.Fatal(err)
	}
}

// processStatus is the status of one process; its PID is 0 if there is none.
func processStatus(k *Kubelet, name string) hostapi.ProcessStatus {
	all, _, _ := k.Status()
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	return hostapi.ProcessStatus{}
}

// waitUntilRunning waits for a process to run and returns its number.
func waitUntilRunning(t *testing.T, k *Kubelet, name string) int {
	t.Helper()
	processtest.Eventually(t, name+" runs", func() bool { return processStatus(k, name).PID != 0 })
	return processStatus(k, name).PID
}
