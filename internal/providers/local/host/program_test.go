package host

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// TestMain runs the tests or, called by one of the names of polderd, a stand-in for it.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case BootProgram:
		syscall.Exit(runFakeBoot(hostapi.MachineDir(os.Args[1]))) // os.Exit would wait for the race detector
	case "etcd", "kube-apiserver":
		runFakeProgram()
		syscall.Exit(0)
	}
	code := m.Run()
	for _, p := range killLeftovers() {
		fmt.Println("left after the tests:", p)
		code = 1
	}
	os.Exit(code)
}

// runFakeBoot does what the bootstrap data say, in one word.
func runFakeBoot(dir hostapi.MachineDir) int {
	b, err := os.ReadFile(dir.SpecFile())
	var m hostapi.MachineSpec
	if err != nil || json.Unmarshal(b, &m) != nil {
		fmt.Println("no machine", err)
		return 1
	}
	fmt.Println("booting")
	switch string(m.UserData) {
	case "fail":
		b, _ = json.Marshal(hostapi.BootStatus{Problem: "no disk", Attempts: 1})
		_ = os.WriteFile(dir.BootFile(), b, 0o600)
		return 1
	case "crash":
		return 2
	case "hang":
		for {
			_ = unix.Pause()
		}
	}
	b, _ = json.Marshal(hostapi.BootStatus{Done: true, Attempts: 1})
	tmp := dir.BootFile() + ".tmp"
	if os.WriteFile(tmp, b, 0o600) != nil || os.Rename(tmp, dir.BootFile()) != nil {
		return 1
	}
	return 0
}

// runFakeProgram serves its own name on --secure-port, if there is one, until it is asked to end; it
// ends when there is no file --wait (any more).
func runFakeProgram() {
	flags := map[string]string{}
	for _, a := range os.Args[1:] {
		k, v, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[k] = v
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM)
	if port := flags["secure-port"]; port != "" {
		l, err := net.Listen("tcp", flags["bind-address"]+":"+port)
		if err != nil {
			fmt.Println(err)
			syscall.Exit(1)
		}
		go func() {
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, flags["bind-address"]) }))
		}()
	}
	fmt.Println("ready")
	<-asked
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(flags["wait"]); err != nil {
			return
		}
	}
}

// killLeftovers lists, and ends, what still runs of this binary.
func killLeftovers() (left []string) {
	self, _ := os.Executable()
	files, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, f := range files {
		exe, _ := os.Readlink(f)
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if exe != self || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Dir(f) + "/cmdline")
		left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return left
}

// testBlock has addresses that no other run of tests uses.
func testBlock() netip.Prefix {
	pid := os.Getpid()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 92 + byte(pid>>12&7), byte(pid>>4) &^ 15, 0}), 20).Masked()
}

// fixture is a host's directory, and the host if it runs.
type fixture struct {
	*hostapi.Client
	dir   hostapi.Dir
	cfg   Config
	stop  func() // cancels the context of Run
	ended chan error
}

// newFixture makes a host's directory; its path has characters that a glob pattern would not match.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := processtest.ShortDir(t, "h[1]")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := kubeversion.NewRange("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	dir := hostapi.Dir(d)
	f := &fixture{
		Client: hostapi.NewClient(dir), dir: dir,
		cfg: Config{Dir: dir, Binary: exe, Versions: versions, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), AllowEverything: true},
	}
	f.write(t, dir.ClusterFile(), hostapi.Cluster{Namespace: "ns", Name: "c", UID: "u", Addresses: testBlock(), Port: int32(freePort(t))})
	if err := os.Mkdir(dir.MachinesDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) write(t *testing.T, file string, v any) {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", testBlock().Addr().Next().String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// machineOf is a worker whose boot does what data say.
func machineOf(name, data string) hostapi.MachineSpec {
	return hostapi.MachineSpec{Name: name, Node: name, UID: "uid of " + name, Version: "v1.36.1", ProviderID: "local://ns/c/" + name, UserData: []byte(data)}
}

func controlPlane(m hostapi.MachineSpec) hostapi.MachineSpec { m.ControlPlane = true; return m }

// writeAPIServerManifest puts the manifest of an API server on a machine's disk.
func (f *fixture) writeAPIServerManifest(t *testing.T, machine string, port int, args ...string) {
	t.Helper()
	args = append([]string{"kube-apiserver", fmt.Sprintf("--secure-port=%d", port)}, args...)
	f.write(t, f.dir.MachineDir(machine).RootFS("/etc/kubernetes/manifests/kube-apiserver.yaml"), fmt.Appendf(nil, `metadata: {name: kube-apiserver}
spec: {containers: [{name: c, command: [%s], ports: [{name: p, containerPort: %d}], readinessProbe: {httpGet: {path: /readyz, port: p}}}]}
`, strings.Join(args, ", "), port))
}

// run starts the host and waits until it answers; it ends with the test at the latest.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	f.start(t)
	processtest.Eventually(t, "it answers", func() bool { _, err := f.Status(t.Context()); return err == nil })
}

func (f *fixture) start(t *testing.T) {
	t.Helper()
	ctx, cancel := contextOf(t)
	f.stop, f.ended = cancel, make(chan error, 1)
	ended := f.ended
	done := make(chan struct{})
	go func() { defer close(done); ended <- Run(ctx, f.cfg) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the host does not end")
		}
	})
}

// waitForExit waits for the end of the host.
func (f *fixture) waitForExit(t *testing.T) error {
	t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the host does not end")
		return nil
	}
}

// machineStatus is the status of one machine.
func (f *fixture) machineStatus(t *testing.T, name string) hostapi.MachineStatus {
	t.Helper()
	s, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Machines {
		if m.Name == name {
			return m
		}
	}
	return hostapi.MachineStatus{}
}

func (f *fixture) putMachines(t *testing.T, machines ...hostapi.MachineSpec) {
	t.Helper()
	for _, m := range machines {
		if err := f.PutMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// waitForBoot waits for the end of the boot, and for its log, which is written a moment later.
func (f *fixture) waitForBoot(t *testing.T, name string) {
	t.Helper()
	processtest.Eventually(t, name+" has booted", func() bool { return f.machineStatus(t, name).Boot.Done && f.bootCount(name) > 0 })
}

// bootCount counts how often a machine's boot was begun.
func (f *fixture) bootCount(name string) int {
	b, _ := os.ReadFile(f.dir.MachineDir(name).LogFile("boot"))
	return strings.Count(string(b), "booting")
}
