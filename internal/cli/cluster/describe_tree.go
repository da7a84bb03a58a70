package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
)

// controlPlanePool is the key of machines of the control plane, which no pool can have.
const controlPlanePool = "control plane"

// buildTree is the cluster with its machines, add-ons and conditions.
func (d *description) buildTree() output.Branch {
	c := d.cluster
	machines := d.machinesByPool()
	take := func(pool string) []output.Branch {
		these := machines[pool]
		delete(machines, pool)
		return d.machineBranches(these)
	}
	root := output.Branch{Name: c.Name, State: phaseOf(c), Message: d.noMachinesReason}
	root.Children = append(root.Children, countBranch("control plane", c.Status.ControlPlane, take(controlPlanePool)))
	for _, p := range poolStatuses(c) {
		root.Children = append(root.Children, countBranch("pool "+p.Name, p.Counts, take(p.Name)))
	}
	for _, pool := range slices.Sorted(maps.Keys(machines)) { // pools that were taken away, whose machines are still there
		b := output.Branch{Name: "pool " + pool, Message: "no longer in the spec", Children: take(pool)}
		if pool == "" {
			b.Name, b.Message = "other machines", ""
		}
		root.Children = append(root.Children, b)
	}
	if b := addonBranches(c.Status.Addons); len(b) > 0 {
		root.Children = append(root.Children, output.Branch{
			Name: "add-ons", State: addonProgress(c.Status.Addons), Children: b,
		})
	}
	if b := conditionBranches(c.Status.Conditions); len(b) > 0 {
		root.Children = append(root.Children, output.Branch{Name: "conditions", Children: b})
	}
	return root
}

// poolStatuses are those of the spec, with what the status knows of them.
func poolStatuses(c *v1alpha1.WorkloadCluster) (all []v1alpha1.PoolStatus) {
	for _, p := range c.Spec.Workers {
		i := slices.IndexFunc(c.Status.Pools, func(s v1alpha1.PoolStatus) bool { return s.Name == p.Name })
		if i >= 0 {
			all = append(all, c.Status.Pools[i])
			continue
		}
		all = append(all, v1alpha1.PoolStatus{Name: p.Name, Counts: v1alpha1.Counts{Desired: p.Replicas}})
	}
	return all
}

// countBranch is a branch of replicas; a part that reports no counts yet has no state, rather than 0/0.
func countBranch(name string, c v1alpha1.Counts, below []output.Branch) output.Branch {
	b := output.Branch{Name: name, Children: below}
	if c.Desired == nil && c.Ready == nil {
		return b
	}
	b.State = formatCounts(c) + " ready"
	if c.Updated != nil && valueOrZero(c.Updated) != valueOrZero(c.Desired) {
		b.Message = fmt.Sprintf("%d as the spec says", *c.Updated)
	}
	return b
}

// machinesByPool goes by labels, our own first: names of MachineDeployments are Cluster API's choice, and the
// control plane has none.
func (d *description) machinesByPool() map[string][]clusterv1.Machine {
	pools := map[string][]clusterv1.Machine{}
	for _, m := range d.machines {
		pool := cmp.Or(m.Labels[v1alpha1.PoolLabel], m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel])
		if _, yes := m.Labels[clusterv1.MachineControlPlaneLabel]; yes {
			pool = controlPlanePool
		}
		pools[pool] = append(pools[pool], m)
	}
	return pools
}

// machineBranches tells only bad news of Ready: that all is well is said by the phase.
func (d *description) machineBranches(all []clusterv1.Machine) (these []output.Branch) {
	slices.SortFunc(all, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range all {
		b := output.Branch{Name: m.Name, State: cmp.Or(m.Status.Phase, "Pending")}
		if !m.DeletionTimestamp.IsZero() {
			b.State = "Deleting"
		}
		trouble := ""
		if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineReadyCondition); c != nil &&
			c.Status != metav1.ConditionTrue {
			trouble = cmp.Or(c.Message, c.Reason)
		}
		node := ""
		if m.Status.NodeRef.Name != "" && m.Status.NodeRef.Name != m.Name {
			node = "node " + m.Status.NodeRef.Name
		}
		b.Message = output.JoinNonEmpty(", ", m.Spec.Version, node, output.Age(d.now, m.CreationTimestamp.Time)+" old",
			trouble)
		these = append(these, b)
	}
	return these
}

// addonBranches keeps the order of stages, which is that in which they are applied.
func addonBranches(all []v1alpha1.AddonStatus) (these []output.Branch) {
	for _, s := range all {
		state := "Waiting"
		if s.Done {
			state = "Done"
		}
		these = append(these, output.Branch{Name: s.Name, State: state, Message: s.Message})
	}
	return these
}

// addonProgress sums up the stages for a line that may be all people read.
func addonProgress(all []v1alpha1.AddonStatus) string {
	done := 0
	for _, s := range all {
		if s.Done {
			done++
		}
	}
	return fmt.Sprintf("%d/%d done", done, len(all))
}

// conditionBranches are those that are not as they should be. Reconciling and Stalled should not be true.
func conditionBranches(all []metav1.Condition) (these []output.Branch) {
	for _, c := range all {
		good := metav1.ConditionTrue
		if c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionStalled {
			good = metav1.ConditionFalse
		}
		if c.Status != good {
			these = append(these, output.Branch{
				Name: c.Type, State: string(c.Status), Message: output.JoinNonEmpty(": ", c.Reason, c.Message),
			})
		}
	}
	return these
}
