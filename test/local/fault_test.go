//go:build fault

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/test/testenv"
)

const faultTimeout = 15 * time.Minute

// Every boot is killed after each of its steps, once; the machines come up all the same.
func TestFaultBootIsInterrupted(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	p.Start(t)
	p.AwaitReady(t)
	if err := os.WriteFile(filepath.Join(p.Data, "interrupt-boot"), []byte("*"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := create(t, p, "broken", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To[int32](1)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3) })
	c.awaitControlPlane(t, faultTimeout, 3, newVersion)
	c.awaitNodes(t, soon, 3, 1, newVersion)
	for _, m := range c.host(t).Machines {
		marks, err := filepath.Glob(filepath.Join(m.Dir, "interrupted-after-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Boot.Steps {
			if _, err := os.Stat(filepath.Join(m.Dir, "interrupted-after-"+filepath.Base(s.Name))); err != nil {
				t.Errorf("%s was not interrupted after %s: %v", m.Name, s.Name, err)
			}
		}
		t.Logf("%s: %d steps, interrupted %d times, %d attempts", m.Name, len(m.Boot.Steps), len(marks), m.Boot.Attempts)
		if m.Boot.Attempts <= len(m.Boot.Steps) {
			t.Errorf("%s: %d attempts for %d steps", m.Name, m.Boot.Attempts, len(m.Boot.Steps))
		}
	}
	if names := members(t, c, machineWithStore(t, c)); len(names) != 3 {
		t.Errorf("members of the store: %v, want three", names)
	}
	isDeleted(t, c)
}

// With the switch that lets tests see what else stops a hostile cluster, a joining control plane believes the workload
// cluster, as it did before: TestJoinDoesNotTrustTheWorkloadCluster can fail.
func TestFaultEverythingAllowed(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	p.Start(t)
	p.AwaitReady(t)
	if err := os.WriteFile(filepath.Join(p.Data, "allow-everything"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := create(t, p, "tampered", newVersion, options{cluster: small("")})
	c.awaitAvailable(t, faultTimeout)
	c.tamper(t)
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3) })
	testenv.Eventually(t, faultTimeout, func() error {
		for _, s := range apiServers(c.host(t)) {
			if slices.ContainsFunc(s.Command, func(a string) bool { return strings.HasPrefix(a, "--etcd-servers=unix:") }) {
				return nil
			}
		}
		return errors.New("no API server has what the workload cluster says")
	})
}

// A control-plane machine whose plug is pulled is replaced, and the API answers meanwhile.
func TestFaultDeadMachineIsReplaced(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "dead", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.awaitControlPlane(t, faultTimeout, 3, newVersion)
	_, host, err := p.HostStatus(t.Context(), c.namespace, c.name)
	if err != nil {
		t.Fatal(err)
	}
	victim := machineWithStore(t, c)
	begin := time.Now()
	if err := host.SetPower(t.Context(), victim.Name, false); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, faultTimeout, func() error {
		s, err := host.Status(t.Context())
		if err != nil {
			return err
		}
		var running []string
		for _, m := range s.Machines {
			if m.Name == victim.Name {
				return fmt.Errorf("the dead machine is still there")
			}
			if m.ControlPlane && m.IsRunning() {
				running = append(running, m.Name)
			}
		}
		if len(running) != 3 {
			return fmt.Errorf("control-plane machines that run: %v", running)
		}
		return nil
	})
	t.Logf("replaced after %s", time.Since(begin).Round(time.Second))
	c.awaitControlPlane(t, faultTimeout, 3, newVersion)
	if names := members(t, c, machineWithStore(t, c)); len(names) != 3 || slices.Contains(names, victim.Node) {
		t.Errorf("members of the store: %v, want three without %s", names, victim.Node)
	}
	isDeleted(t, c)
}

// The only machine of a control plane whose files are gone is not made anew, which would be an empty cluster under the
// old name: it is said that it is lost.
func TestFaultLostMachine(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "lost", newVersion, options{})
	c.awaitAvailable(t, faultTimeout)
	s, _, err := p.HostStatus(t.Context(), c.namespace, c.name)
	if err != nil {
		t.Fatal(err)
	}
	victim := machineWithStore(t, c)
	o, err := c.get(t)
	if err != nil {
		t.Fatal(err)
	}
	infra := &infrav1.LocalCluster{}
	if err := c.mgmt.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: o.Spec.InfrastructureRef.Name}, infra); err != nil {
		t.Fatal(err)
	}
	dir := launch.Launcher{HostsDir: hostapi.HostsDir(p.Data)}.Dir(string(infra.UID))
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(string(dir.MachineDir(victim.Name))); err != nil {
		t.Fatal(err)
	}
	lm := &infrav1.LocalMachine{}
	testenv.Eventually(t, faultTimeout, func() error {
		if err := c.mgmt.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: victim.Name}, lm); err != nil {
			return err
		}
		if b := meta.FindStatusCondition(lm.Status.Conditions, infrav1.BootedCondition); b == nil || b.Reason != infrav1.MachineLostReason {
			return fmt.Errorf("it is not said that the machine is lost: %v", b)
		}
		return nil
	})
	if s, _, err = p.HostStatus(t.Context(), c.namespace, c.name); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Machines {
		if m.Name == victim.Name {
			t.Errorf("it was made anew: %+v", m.Boot)
		}
	}
	isDeleted(t, c)
}

// Two minors one after the other, under load and with three control planes; then the computer
// restarts.
func TestFaultUpgradeTwiceThenReboot(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "old", olderVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.awaitControlPlane(t, faultTimeout, 3, olderVersion)
	for _, v := range []string{oldVersion, newVersion} {
		begin := time.Now()
		upgrade(t, c, v)
		t.Logf("upgraded to %s after %s", v, time.Since(begin).Round(time.Second))
	}
	p.Kill()
	kill(t, c.host(t).PID)
	testenv.Eventually(t, soon, func() error {
		left, err := p.Processes()
		if err != nil || len(left) > 0 {
			return fmt.Errorf("processes are left: %v, %w", left, err)
		}
		return nil
	})
	begin := time.Now()
	p.Start(t)
	p.AwaitReady(t)
	c.mgmt = p.Client(t)
	c.awaitNodes(t, faultTimeout, 3, 2, newVersion)
	c.awaitAvailable(t, faultTimeout)
	t.Logf("after a restart of everything available again after %s", time.Since(begin).Round(time.Second))
	isDeleted(t, c)
}

// A full disk makes the plane refuse changes and ends a cluster's etcd, both with their reason, and a start is refused;
// once there is space again, everything goes on from where it was.
func TestFaultDiskFull(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	smallDisk(t, p)
	p.Start(t)
	p.AwaitReady(t)
	c := create(t, p, "full", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To[int32](1)
	}})
	c.awaitAvailable(t, faultTimeout)
	filler := filepath.Join(p.Data, "filler")
	fill(t, filler)
	testenv.Eventually(t, soon, func() error {
		out, err := p.Tree.Command("polder", "status", "--data-dir", p.Data).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is full") {
			return fmt.Errorf("polder status does not say it: %w: %s", err, out)
		}
		return nil
	})
	more := filepath.Join(p.Data, "more")
	fill(t, more) // what the plane had kept for itself, and gave back
	testenv.Eventually(t, faultTimeout, func() error {
		said := fmt.Sprint(c.host(t).Machines)
		if !strings.Contains(said, "no space left on device") {
			return errors.New("nothing is said of the disk: " + said)
		}
		return nil
	})
	if code := p.Signal(t, syscall.SIGTERM, soon); code != exit.OK {
		t.Errorf("polderd ended with code %d", code)
	}
	p.Start(t)
	if code := p.AwaitExit(t, soon); code != exit.DataDir || !strings.Contains(p.Log(), "is full") {
		t.Errorf("a start on a full disk ended with code %d", code)
	}
	if err := errors.Join(os.Remove(filler), os.Remove(more)); err != nil {
		t.Fatal(err)
	}
	p.Start(t)
	p.AwaitReady(t)
	c.awaitNodes(t, faultTimeout, 1, 1, newVersion)
	c.awaitAvailable(t, faultTimeout)
	isDeleted(t, c)
}

// smallDisk makes dir a file system of its own that the plane nearly fills. It needs root, as the
// whole fault matrix does not: run this one alone with it if you lack it.
func smallDisk(t *testing.T, p *testenv.Plane) {
	t.Helper()
	dir := p.Data
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=450m,mode=0700,uid=%d,gid=%d", owner.Uid, owner.Gid)); err != nil {
		t.Fatalf("a file system for this test cannot be mounted (%v); run it as root", err)
	}
	t.Cleanup(func() {
		p.StopEverything(t) // whose files are gone after this
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes until there is no space.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
