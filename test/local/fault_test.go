//go:build fault

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
	if names := members(t, machineWithStore(t, c)); len(names) != 3 {
		t.Errorf("members of the store: %v, want three", names)
	}
	isDeleted(t, c)
}

// A control-plane machine whose plug is pulled is replaced, and the API answers meanwhile.
func TestFaultDeadMachineIsReplaced(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "dead", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.awaitControlPlane(t, faultTimeout, 3, newVersion)
	_, host, err := p.Host(t.Context(), c.namespace, c.name)
	if err != nil {
		t.Fatal(err)
	}
	victim := machineWithStore(t, c)
	begin := time.Now()
	if err := host.Power(t.Context(), victim.Name, false); err != nil {
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
			if m.ControlPlane && m.Running() {
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
	if names := members(t, machineWithStore(t, c)); len(names) != 3 || slices.Contains(names, victim.Node) {
		t.Errorf("members of the store: %v, want three without %s", names, victim.Node)
	}
	isDeleted(t, c)
}

// Two minors one after the other, under load and with three control planes; then the computer
// restarts.
func TestFaultUpgradeTwiceThenReboot(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "old", "v1.34.2", options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.awaitControlPlane(t, faultTimeout, 3, "v1.34.2")
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
