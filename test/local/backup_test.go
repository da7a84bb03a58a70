package local

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/test/history"
	"github.com/polder-kaas/polder/test/testenv"
)

// A plane is backed up with its local clusters while a client of one writes, and restored elsewhere: the same machines
// start there, with all that the cluster, whose etcd has three members, acknowledged before the backup began.
func TestBackupWithLocalClusters(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "moves", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
		o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To[int32](1)
	}})
	c.awaitAvailable(t, createTimeout)
	c.awaitControlPlane(t, createTimeout, 3, newVersion)
	c.awaitNodes(t, soon, 3, 1, newVersion)
	machines := machineUIDs(t, c)
	config := c.config(t)

	w, err := history.Start(t.Context(), config, "default", "w", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	awaitWrites(t, w, 20)
	before := w.Checkpoint()
	file := filepath.Join(p.Tree.Root, "backup")
	runPolder(t, p, "backup", file, "--plaintext", "--local-clusters", "--data-dir", p.Data)
	awaitWrites(t, w, w.Acknowledged()+20) // the cluster goes on
	w.Stop()
	if code := p.Signal(t, syscall.SIGTERM, time.Minute); code != 0 {
		t.Fatalf("polderd ended with %d", code)
	}
	runPolder(t, p, "down", "--clusters", "--data-dir", p.Data) // the addresses are those of the restored one

	other := testenv.NewPlane(t, p.Tree)
	other.Data = filepath.Join(p.Tree.Root, "other")
	runPolder(t, p, "restore", file, "--data-dir", other.Data)
	other.Start(t)
	other.AwaitReady(t)
	c.plane, c.mgmt = other, other.Client(t)
	c.awaitNodes(t, createTimeout, 3, 1, newVersion)
	c.awaitAvailable(t, createTimeout)
	if err := before.Verify(t.Context(), config); err != nil {
		t.Error(err)
	}
	if now := machineUIDs(t, c); fmt.Sprint(now) != fmt.Sprint(machines) {
		t.Errorf("machines are %v, and were %v", now, machines)
	}
	m, _ := process(t, c.host(t), "etcd")
	if n := len(members(t, c, m)); n != 3 {
		t.Errorf("etcd has %d members", n)
	}
}

func awaitWrites(t *testing.T, w *history.Writers, n int64) {
	t.Helper()
	testenv.Eventually(t, createTimeout, func() error {
		if got := w.Acknowledged(); got < n {
			return fmt.Errorf("%d writes acknowledged, waiting for %d", got, n)
		}
		return nil
	})
}

// machineUIDs tells machines apart from others of the same names, made anew.
func machineUIDs(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range c.host(t).Machines {
		all[m.Name] = m.UID
	}
	return all
}

func runPolder(t *testing.T, p *testenv.Plane, args ...string) {
	t.Helper()
	if out, err := p.Tree.Command("polder", args...).CombinedOutput(); err != nil {
		t.Fatalf("polder %v: %v\n%s", args, err, out)
	}
}
