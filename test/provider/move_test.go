//go:build clusterctl

package provider

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// clusterctl moves the clusters of a namespace, a protected one among them, into a plane that has others. No machine is made again, neither
// plane harms what else it has, and the clusters can be changed and deleted where they are then.
func TestMove(t *testing.T) {
	t.Parallel()
	from, stays := newGround(t), newGround(t)
	to, elsewhere := newTarget(t)
	from.cluster("plain", 2)
	protected := from.cluster("protected", 1)
	from.change(protected.Name, func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) })
	stays.cluster("stays", 1)
	elsewhere.cluster("was-here", 1)
	for _, name := range []string{"plain", "protected"} {
		from.await(name, ready)
	}
	stays.await("stays", ready)
	elsewhere.await("was-here", ready)
	before, others := from.machineNames(), map[*ground][]string{stays: stays.machineNames(), elsewhere: elsewhere.machineNames()}

	there := &ground{T: t, mgmt: elsewhere.mgmt, ns: from.ns}
	clusterctlMove(t, shared.Get(t), to, from.ns)
	begin := time.Now()
	for _, name := range []string{"plain", "protected"} {
		there.await(name, ready)
	}
	t.Logf("both are ready on the other plane %s after the move", time.Since(begin).Round(time.Millisecond))

	if after := there.machineNames(); !slices.Equal(after, before) {
		t.Errorf("the machines were %v, and are %v", before, after)
	}
	if n := there.made(); n > 0 {
		t.Errorf("%d machines were made on the other plane", n)
	}
	if err := countIs(instantProvider.ClusterCount(from.ns), 2, "clusters in memory"); err != nil {
		t.Error(err)
	}
	from.awaitMoved()
	for g, names := range others {
		if after := g.machineNames(); !slices.Equal(after, names) {
			t.Errorf("the machines of others were %v, and are %v", names, after)
		}
	}
	stays.await("stays", ready)
	elsewhere.await("was-here", ready)

	there.change("plain", func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To[int32](3) })
	there.await("plain", func(o *v1alpha1.WorkloadCluster) error {
		if ptr.Deref(o.Status.Workers.Ready, 0) != 3 {
			return fmt.Errorf("%d workers are ready", ptr.Deref(o.Status.Workers.Ready, 0))
		}
		return ready(o)
	})
	there.change("protected", func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = nil })
	for _, name := range []string{"plain", "protected"} {
		o := &v1alpha1.WorkloadCluster{}
		o.Namespace, o.Name = there.ns, name
		there.remove(o)
		there.awaitGone(o)
	}
	there.awaitNothing()
}

// clusterctl is killed while it makes the objects on the other plane. Both planes say what is the matter, nothing is made twice, and the move
// that docs/operate/move.md advises then is a whole one.
func TestMoveInterrupted(t *testing.T) {
	t.Parallel()
	to, elsewhere := newTarget(t)
	for _, last := range []client.ObjectList{&v1alpha1.WorkloadClusterList{}, &clusterv1.MachineList{}} {
		from := newGround(t)
		there := &ground{T: t, mgmt: elsewhere.mgmt, ns: from.ns}
		from.cluster("moved", 2)
		from.await("moved", ready)
		before := from.machineNames()
		there.killMove(newMove(t, shared.Get(t), to, from.ns), last)

		from.await("moved", func(o *v1alpha1.WorkloadCluster) error {
			if o.Status.Phase != v1alpha1.PhasePaused || o.Status.Actor != v1alpha1.PlatformOperator || !strings.Contains(o.Status.NextStep, "kubectl patch cluster") {
				return fmt.Errorf("on the plane it comes from, it says %+v", o.Status)
			}
			return nil
		})
		there.await("moved", func(o *v1alpha1.WorkloadCluster) error {
			came := there.get("moved", &clusterv1.Cluster{})
			waits := o.Status.Phase == v1alpha1.PhaseStalled && strings.Contains(o.Status.NextStep, "clusterctl move")
			if o.Status.Actor != v1alpha1.PlatformOperator || !came && !waits || came && o.Status.Phase != v1alpha1.PhasePaused {
				return fmt.Errorf("on the other plane it says %+v", o.Status)
			}
			return nil
		})
		from.unpause()
		from.await("moved", ready)
		clusterctlMove(t, shared.Get(t), to, from.ns)
		there.await("moved", ready)
		if after := there.machineNames(); !slices.Equal(after, before) {
			t.Errorf("the machines were %v, and are %v", before, after)
		}
		if n := there.made(); n > 0 {
			t.Errorf("%d machines were made on the other plane", n)
		}
		from.awaitMoved()
		o := &v1alpha1.WorkloadCluster{}
		o.Namespace, o.Name = there.ns, "moved"
		there.remove(o)
		there.awaitGone(o)
		there.awaitNothing()
	}
}

// get reads an object, and reports whether it is there.
func (g *ground) get(name string, o client.Object) bool {
	g.Helper()
	err := g.mgmt.Get(g.Context(), client.ObjectKey{Namespace: g.ns, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		g.Fatal(err)
	}
	return err == nil
}

// unpause takes the pause away that clusterctl has left.
func (g *ground) unpause() {
	g.Helper()
	var clusters clusterv1.ClusterList
	var classes clusterv1.ClusterClassList
	if err := errors.Join(g.mgmt.List(g.Context(), &clusters, client.InNamespace(g.ns)), g.mgmt.List(g.Context(), &classes, client.InNamespace(g.ns))); err != nil {
		g.Fatal(err)
	}
	for i := range clusters.Items {
		if err := g.mgmt.Patch(g.Context(), &clusters.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":null}}`))); err != nil {
			g.Fatal(err)
		}
	}
	for i := range classes.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, clusterv1.PausedAnnotation)
		if err := g.mgmt.Patch(g.Context(), &classes.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			g.Fatal(err)
		}
	}
}

// newTarget starts another plane with the same provider, and a namespace in it.
func newTarget(t *testing.T) (*testenv.Plane, *ground) {
	t.Helper()
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.Start(t, shared.Flags...)
	p.AwaitReady(t)
	g := newGroundOn(t, p)
	stop, err := g.run(p)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("running the provider: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	g.awaitProvider()
	return p, g
}

// newMove prepares a move of all clusters of a namespace.
func newMove(t *testing.T, from, to *testenv.Plane, ns string) *exec.Cmd {
	t.Helper()
	kubeconfig := func(p *testenv.Plane) string { return filepath.Join(p.Data, "admin.kubeconfig") }
	cmd := exec.CommandContext(t.Context(), testenv.Tool(t, "clusterctl"), "move", "-n", ns, "--kubeconfig", kubeconfig(from), "--to-kubeconfig", kubeconfig(to), "-v", "1")
	// Its cache and configuration would be in the home directory, and it would look for newer versions of itself.
	cmd.Env = []string{"HOME=" + t.TempDir(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true"}
	return cmd
}

func clusterctlMove(t *testing.T, from, to *testenv.Plane, ns string) {
	t.Helper()
	begin := time.Now()
	if out, err := newMove(t, from, to, ns).CombinedOutput(); err != nil {
		t.Fatalf("clusterctl move: %v\n%s", err, out)
	}
	t.Logf("clusterctl took %s", time.Since(begin).Round(time.Millisecond))
}

// killMove begins a move, and kills it when the other plane has objects of a kind.
func (g *ground) killMove(cmd *exec.Cmd, l client.ObjectList) {
	g.Helper()
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	testenv.Eventually(g, soon, func() error {
		if err := g.mgmt.List(g.Context(), l, client.InNamespace(g.ns)); err != nil {
			return err
		}
		if meta.LenList(l) == 0 {
			return fmt.Errorf("no %T has come", l)
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		g.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// machineNames are the names and provider IDs of all Machines, in order.
func (g *ground) machineNames() []string {
	g.Helper()
	var out []string
	for _, all := range g.machines() {
		for _, m := range all {
			out = append(out, m.Name+" "+m.Spec.ProviderID)
		}
	}
	slices.Sort(out)
	return out
}

// awaitMoved waits until the namespace has neither clusters nor stacks any more.
func (g *ground) awaitMoved() {
	g.Helper()
	lists := map[string]client.ObjectList{
		"WorkloadClusters": &v1alpha1.WorkloadClusterList{}, "Clusters": &clusterv1.ClusterList{}, "Machines": &clusterv1.MachineList{},
		"ClusterClasses": &clusterv1.ClusterClassList{}, "ClusterStacks": &csv1.ClusterStackList{}, "ClusterStackReleases": &csv1.ClusterStackReleaseList{},
	}
	for _, what := range slices.Sorted(maps.Keys(lists)) {
		testenv.Eventually(g, soon, func() error {
			l := lists[what]
			if err := g.mgmt.List(g.Context(), l, client.InNamespace(g.ns)); err != nil {
				return err
			}
			return countIs(meta.LenList(l), 0, what+" that were moved")
		})
	}
}
