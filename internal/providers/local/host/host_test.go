package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func TestLifeOfAMachine(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	s, err := f.Status(t.Context())
	if err != nil || s.PID != os.Getpid() || s.Cluster.UID != "u" || len(s.Machines) > 0 || s.StartedAt.IsZero() || s.Memory == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	f.putMachines(t, machineOf("a", "ok"))
	f.waitForBoot(t, "a")
	f.putMachines(t, machineOf("a", "ok")) // once more makes no difference
	got := f.machineStatus(t, "a")
	first := testBlock().Addr()
	for range firstMachineIndex {
		first = first.Next()
	}
	if got.Address != first.String() || got.Node != "a" || got.UID != "uid of a" || got.Off || got.Problem != "" || f.bootCount("a") != 1 {
		t.Errorf("%+v, booted %d times", got, f.bootCount("a"))
	}
	other := machineOf("a", "ok")
	other.UID = "another"
	if err := f.PutMachine(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another machine of the name a") {
		t.Errorf("error %v", err)
	}
	for range 2 { // once more makes no difference
		if err := f.DeleteMachine(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(f.dir.MachinesDir()); len(left) > 0 || f.machineStatus(t, "a").Name != "" {
		t.Errorf("left are %v", left)
	}
	f.putMachines(t, other) // the name is free again
	f.waitForBoot(t, "a")
}

func TestPutErrors(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	for name, c := range map[string]struct {
		change func(*hostapi.MachineSpec)
		want   string
	}{
		"a name that is none": {func(m *hostapi.MachineSpec) { m.Node = "No" }, "node name"},
		"an old version":      {func(m *hostapi.MachineSpec) { m.Version = "v1.20.0" }, "cannot be run here"},
		"no provider ID":      {func(m *hostapi.MachineSpec) { m.ProviderID = "" }, "lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machineOf("a", "ok")
			c.change(&m)
			if err := f.PutMachine(t.Context(), m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(f.dir.MachinesDir()); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func TestRestartOfTheHost(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, machineOf("b", "ok"), machineOf("a", "ok"), machineOf("c", "hang"))
	f.waitForBoot(t, "a")
	f.waitForBoot(t, "b")
	processtest.Eventually(t, "c boots", func() bool { return f.bootCount("c") == 1 })
	before, _ := f.Status(t.Context())
	if err := f.DeleteMachine(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := f.Stop(t.Context(), false); err != nil {
		t.Error(err)
	}
	if err := f.waitForExit(t); err != nil {
		t.Error(err)
	}
	if left := killLeftovers(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := f.Status(t.Context()); !errors.Is(err, hostapi.ErrNotRunning) {
		t.Errorf("error %v", err)
	}

	// Machines that were being made or removed when the host ended, and one that cannot be understood.
	f.write(t, f.dir.MachineDir("half-made").AddressFile(), []byte("127.1.2.3\n"))
	f.write(t, f.dir.MachineDir("half-removed").RootFS("etc", "x"), []byte("x"))
	f.write(t, f.dir.MachineDir("broken").SpecFile(), []byte("{"))
	f.write(t, f.dir.MachineDir("moved").SpecFile(), machineOf("away", "ok"))
	old := machineOf("old", "ok")
	old.Version = "v1.20.0"
	f.write(t, f.dir.MachineDir("old").SpecFile(), old)
	f.run(t)
	for _, name := range []string{"half-made", "half-removed", "a"} {
		if _, err := os.Stat(string(f.dir.MachineDir(name))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	now, _ := f.Status(t.Context())
	if now.Revision <= before.Revision {
		t.Errorf("revision %d is not after %d", now.Revision, before.Revision)
	}
	var names []string
	for _, m := range now.Machines {
		names = append(names, m.Name)
	}
	if d := cmp.Diff([]string{"b", "broken", "c", "moved", "old"}, names); d != "" {
		t.Error(d)
	}
	if got, was := f.machineStatus(t, "b").Address, before.Machines[1].Address; got != was || f.bootCount("b") != 1 {
		t.Errorf("b has %s, had %s, booted %d times", got, was, f.bootCount("b"))
	}
	processtest.Eventually(t, "c boots again", func() bool { return f.bootCount("c") == 2 })
	for name, want := range map[string]string{"broken": "machine.json", "old": "v1.20.0 cannot be run here", "moved": `another name, "away"`} {
		if got := f.machineStatus(t, name).Problem; !strings.Contains(got, want) || !strings.Contains(got, "delete it") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if err := f.SetPower(t.Context(), name, false); err == nil {
			t.Errorf("%s was switched off", name)
		}
	}
	if err := f.PutMachine(t.Context(), machineOf("broken", "ok")); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"broken", "old", "moved"} {
		if err := f.DeleteMachine(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	f.putMachines(t, machineOf("broken", "ok")) // as if it had never been
	f.waitForBoot(t, "broken")
}

func TestNoTwoMachinesGetTheSameAddress(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if err := f.PutMachine(t.Context(), machineOf(fmt.Sprintf("m%d", i), "hang")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, m := range s.Machines {
		if seen[m.Address] != "" {
			t.Errorf("%s and %s have %s", m.Name, seen[m.Address], m.Address)
		}
		seen[m.Address] = m.Name
	}
	if len(seen) != 24 {
		t.Errorf("%d addresses", len(seen))
	}
}

func TestPower(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, machineOf("a", "hang"))
	processtest.Eventually(t, "it boots", func() bool { return f.bootCount("a") == 1 })
	address := f.machineStatus(t, "a").Address
	for range 2 { // once more makes no difference
		if err := f.SetPower(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
	}
	if left := killLeftovers(); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	f.stop()
	_ = f.waitForExit(t)
	f.run(t)
	if m := f.machineStatus(t, "a"); !m.Off || m.Address != address {
		t.Errorf("%+v", m)
	}
	f.putMachines(t, machineOf("a", "hang"))
	if f.bootCount("a") != 1 {
		t.Error("it was switched on by polderd")
	}
	for range 2 {
		if err := f.SetPower(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
	}
	processtest.Eventually(t, "it boots again", func() bool { return f.bootCount("a") == 2 && !f.machineStatus(t, "a").Off })
	if err := f.SetPower(t.Context(), "nobody", true); err == nil || !strings.Contains(err.Error(), "no machine nobody") {
		t.Errorf("error %v", err)
	}
}

func TestFail(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, controlPlane(machineOf("a", "hang")))
	port := freePort(t)
	f.writeAPIServerManifest(t, "a", port)
	runningPID := func() int {
		for _, p := range f.machineStatus(t, "a").Processes {
			if p.Name == "kube-apiserver" {
				return p.PID
			}
		}
		return 0
	}
	processtest.Eventually(t, "it runs", func() bool { return runningPID() != 0 })
	first := runningPID()
	for _, c := range []struct {
		how   hostapi.Failure
		state string // of the process, after proc(5)
	}{{hostapi.FailStop, "T"}, {hostapi.FailContinue, "SR"}} {
		if err := f.FailMachine(t.Context(), "a", c.how); err != nil {
			t.Fatal(err)
		}
		processtest.Eventually(t, string(c.how), func() bool { return strings.Contains(c.state, processState(first)) })
	}
	if err := f.FailMachine(t.Context(), "a", hostapi.FailKill); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it runs again", func() bool { pid := runningPID(); return pid != 0 && pid != first })
	for name, how := range map[string]hostapi.Failure{"a": "fire", "nobody": hostapi.FailKill} {
		if err := f.FailMachine(t.Context(), name, how); err == nil {
			t.Errorf("%s fails by %s", name, how)
		}
	}
	if err := f.FailMachine(t.Context(), "a", hostapi.FailDisk); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(f.dir.MachineDir("a"))); !errors.Is(err, os.ErrNotExist) || f.machineStatus(t, "a").Name != "" {
		t.Errorf("it is still there: %v", err)
	}
	if left := killLeftovers(); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

func TestPartition(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, controlPlane(machineOf("a", "hang")))
	f.writeAPIServerManifest(t, "a", freePort(t))
	serves := func() bool { s, err := f.Status(t.Context()); return err == nil && len(s.Serving) == 1 }
	processtest.Eventually(t, "it serves", serves)
	if err := f.FailMachine(t.Context(), "a", hostapi.FailPartition); err != nil {
		t.Fatal(err)
	}
	if m := f.machineStatus(t, "a"); serves() || !m.Partitioned || m.IsRunning() || m.Processes[0].PID == 0 {
		t.Errorf("cut off from the network it is %+v", m)
	}
	f.stop()
	_ = f.waitForExit(t)
	f.run(t)
	if m := f.machineStatus(t, "a"); serves() || !m.Partitioned {
		t.Errorf("after a restart of the host it is %+v", m)
	}
	if err := f.FailMachine(t.Context(), "a", hostapi.FailContinue); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it serves again", serves)
	if m := f.machineStatus(t, "a"); m.Partitioned {
		t.Errorf("connected again it is %+v", m)
	}
}

// processState is one letter, after proc(5).
func processState(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:min(1, len(rest))]
}

// Whoever changes a machine at the same time as others, in the end it is there or not.
func TestChangesAtTheSameTime(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	for range 5 {
		f.putMachines(t, machineOf("a", "hang"))
		var wg sync.WaitGroup
		for _, on := range []bool{false, true, false} {
			wg.Go(func() { _ = f.SetPower(t.Context(), "a", on) })
		}
		for range 2 {
			wg.Go(func() { _, _ = f.Status(t.Context()) })
			wg.Go(func() { _ = f.DeleteMachine(t.Context(), "a") })
		}
		wg.Wait()
		_, err := os.Stat(string(f.dir.MachineDir("a")))
		if known := f.machineStatus(t, "a").Name != ""; known || !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("known: %t, directory: %v", known, err)
		}
		if left := killLeftovers(); len(left) > 0 {
			t.Fatalf("still running: %q", left)
		}
	}
}

func TestBootThatFails(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, machineOf("a", "fail"), machineOf("b", "crash"))
	for name, want := range map[string]string{"a": "no disk", "b": "the boot process exited with code 2"} {
		processtest.Eventually(t, name+" says why", func() bool { return strings.Contains(f.machineStatus(t, name).Boot.Problem, want) })
		processtest.Eventually(t, name+" is tried again", func() bool { return f.bootCount(name) > 1 })
	}
}

func TestBootProgramThatIsMissing(t *testing.T) {
	f := newFixture(t)
	f.cfg.Binary = "/nowhere/polderd"
	f.run(t)
	f.putMachines(t, machineOf("a", "ok"))
	processtest.Eventually(t, "it says why", func() bool { return strings.Contains(f.machineStatus(t, "a").Boot.Problem, "could not be started") })
}

// Machines whose boot cannot succeed must not keep others from booting.
func TestBootsThatAreInNobodysWay(t *testing.T) {
	for name, c := range map[string]struct {
		others string
		then   hostapi.MachineSpec
	}{
		"workers that fail":                     {"crash", machineOf("last", "ok")},
		"workers that wait for a control plane": {"hang", controlPlane(machineOf("last", "ok"))},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run(t)
			for i := range parallelBoots {
				f.putMachines(t, machineOf(fmt.Sprintf("m%d", i), c.others))
			}
			for i := range parallelBoots {
				processtest.Eventually(t, "all boot", func() bool { return f.bootCount(fmt.Sprintf("m%d", i)) > 0 })
			}
			f.putMachines(t, c.then)
			f.waitForBoot(t, "last")
		})
	}
}

func TestBootsAtTheSameTimeAreFew(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	for i := range parallelBoots + 2 {
		f.putMachines(t, machineOf(fmt.Sprintf("m%d", i), "hang"))
	}
	begun := func() (n int) {
		for i := range parallelBoots + 2 {
			n += f.bootCount(fmt.Sprintf("m%d", i))
		}
		return n
	}
	processtest.Eventually(t, "some boot", func() bool { return begun() >= parallelBoots })
	if n := len(killLeftovers()); n != parallelBoots { // ends them, and the next ones get their turn
		t.Errorf("%d boot at the same time", n)
	}
	processtest.Eventually(t, "all have booted once", func() bool { return begun() >= parallelBoots+2 })
}

func TestAPIServersBehindTheEndpoint(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	for _, name := range []string{"a", "b"} {
		f.writeAPIServerManifest(t, name, freePort(t)) // not the port of the endpoint
		f.putMachines(t, controlPlane(machineOf(name, "ok")))
	}
	serving := func(want ...string) func() bool {
		return func() bool { s, err := f.Status(t.Context()); return err == nil && cmp.Equal(want, s.Serving) }
	}
	processtest.Eventually(t, "both serve", serving("a", "b"))
	s, _ := f.Status(t.Context())
	ask := func() string {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
		res, err := c.Get("http://" + s.Cluster.Endpoint().String())
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	processtest.Eventually(t, "both answer", func() bool {
		one := ask()
		return ask() != one
	})
	if err := f.DrainMachine(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "one serves", serving("b"))
	if m := f.machineStatus(t, "a"); len(m.Processes) != 1 || m.Processes[0].PID != 0 {
		t.Errorf("%+v", m.Processes)
	}
	if err := f.DrainMachine(t.Context(), "b"); err != nil { // the last one stays
		t.Fatal(err)
	}
	if err := f.DrainMachine(t.Context(), "nobody"); err != nil {
		t.Error(err)
	}
	if !serving("b")() || ask() != f.machineStatus(t, "b").Address {
		t.Errorf("answer %q", ask())
	}
	if m := f.machineStatus(t, "b").Processes[0]; m.Memory == 0 || !m.Ready {
		t.Errorf("%+v", m)
	}
}

func TestStop(t *testing.T) {
	for name, now := range map[string]bool{"in order": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run(t)
			wait := filepath.Join(t.TempDir(), "wait")
			f.write(t, wait, []byte{})
			f.writeAPIServerManifest(t, "a", freePort(t), "--wait="+wait)
			f.putMachines(t, controlPlane(machineOf("a", "hang")))
			processtest.Eventually(t, "it serves", func() bool { s, err := f.Status(t.Context()); return err == nil && len(s.Serving) == 1 })
			watched := make(chan error, 1)
			s, _ := f.Status(t.Context())
			go func() { _, err := f.Watch(t.Context(), s.Revision+1000); watched <- err }()
			if err := f.Stop(t.Context(), now); err != nil {
				t.Error("no answer:", err)
			}
			if !now {
				select {
				case err := <-f.ended:
					t.Fatalf("it did not wait for the API server: %v", err)
				case <-time.After(300 * time.Millisecond):
				}
				_ = os.Remove(wait)
			}
			begin := time.Now()
			if err := f.waitForExit(t); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("took %s", took)
			}
			<-watched
			if left := killLeftovers(); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
			if pid, err := filelock.Holder(f.dir.LockFile()); err != nil || pid != 0 {
				t.Errorf("locked by %d, %v", pid, err)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *fixture)
		want   string
	}{
		"another host": {func(t *testing.T, f *fixture) {
			lock, err := filelock.Acquire(f.dir.LockFile())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lock.Close() })
		}, "is locked by process"},
		"a cluster that was removed": {func(_ *testing.T, f *fixture) { _ = os.Remove(f.dir.ClusterFile()) }, "no such file"},
		"a cluster that is none": {func(t *testing.T, f *fixture) { f.write(t, f.dir.ClusterFile(), hostapi.Cluster{UID: "u", Port: 1}) },
			"no block of loopback"},
		"a file that is none":           {func(t *testing.T, f *fixture) { f.write(t, f.dir.ClusterFile(), []byte("{")) }, "cluster.json"},
		"a socket that cannot be there": {func(t *testing.T, f *fixture) { f.write(t, f.dir.Socket()+"/x", []byte{}) }, "host.sock"},
		"no folder for machines": {func(t *testing.T, f *fixture) {
			_ = os.Remove(f.dir.MachinesDir())
			f.write(t, f.dir.MachinesDir(), []byte{})
		}, "machines"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.change(t, f)
			f.start(t)
			if err := f.waitForExit(t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestASocketThatWasLeft(t *testing.T) {
	f := newFixture(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.dir.Socket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	f.run(t)
	if info, err := os.Stat(f.dir.Socket()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestEndpointInUse(t *testing.T) {
	f := newFixture(t)
	var c hostapi.Cluster
	if err := readJSON(f.dir.ClusterFile(), &c); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", c.Endpoint().String())
	if err != nil {
		t.Fatal(err)
	}
	f.run(t)
	processtest.Eventually(t, "it is said", func() bool {
		s, err := f.Status(t.Context())
		return err == nil && strings.Contains(s.Problem, "endpoint cannot be opened")
	})
	_ = l.Close()
	processtest.Eventually(t, "it passes", func() bool { s, err := f.Status(t.Context()); return err == nil && s.Problem == "" })
}

// Nobody could find or stop a host whose directory is gone.
func TestStopsWhenDirectoryRemoved(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	f.putMachines(t, machineOf("a", "hang"))
	// The machine, which is just starting, may write a file into a folder that is being removed.
	processtest.Eventually(t, "the directory is removed", func() bool { return os.RemoveAll(string(f.dir)) == nil })
	if err := f.waitForExit(t); err != nil {
		t.Error(err)
	}
	if left := killLeftovers(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// A machine that was made without its cluster's configuration gets it as long as it boots.
func TestConfigurationComesLater(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	spec := machineOf("a", "fail")
	f.putMachines(t, spec)
	if f.machineStatus(t, "a").Configured {
		t.Error("it has a configuration")
	}
	spec.ClusterConfiguration = []byte("first")
	f.putMachines(t, spec)
	spec.ClusterConfiguration = []byte("second")
	f.putMachines(t, spec)
	var have hostapi.MachineSpec
	b, err := os.ReadFile(f.dir.MachineDir("a").SpecFile())
	if err != nil || json.Unmarshal(b, &have) != nil || string(have.ClusterConfiguration) != "first" || !f.machineStatus(t, "a").Configured {
		t.Errorf("%s, %v", b, err)
	}
	var c hostapi.Cluster
	processtest.Eventually(t, "the boot knows its cluster", func() bool {
		b, err := os.ReadFile(f.dir.MachineDir("a").ClusterFile())
		return err == nil && json.Unmarshal(b, &c) == nil && c.Validate() == nil
	})
}
