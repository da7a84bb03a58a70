package workloadcluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/workload/probe"
	"github.com/polder-kaas/polder/stack/version"
)

// maxStages is how many stages a status lists.
const maxStages = 64

// observe reads what Cluster API and the add-ons' controller report, and puts it into the status.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	if s.cluster == nil || !s.ownsCluster() {
		reason, text := v1alpha1.ReasonNotThereYet, "nothing of the cluster was made yet"
		if s.object.Status.ClusterUID != "" {
			reason, text = v1alpha1.ReasonClusterLost, "the Cluster that was made is gone"
		} else if s.object.Annotations[v1alpha1.MovingAnnotation] != "" {
			reason, text = v1alpha1.ReasonClusterMoving, "the Cluster has not come yet from another plane"
		}
		for _, t := range []string{v1alpha1.ConditionControlPlane, v1alpha1.ConditionReachable, v1alpha1.ConditionWorkers,
			v1alpha1.ConditionAddons} {
			s.conditions.SetFalse(t, reason, text)
		}
		return nil
	}
	s.fillStatus()
	s.observeControlPlane()
	s.observeReachability(r.probeResult(s))
	s.observeWorkers()
	s.observeAddons()
	if err := r.checkQuota(ctx, s); err != nil {
		return err
	}
	if err := r.countPools(ctx, s); err != nil {
		return err
	}
	// The live reads of verify are only worth it if nothing else is pending.
	if s.looksReady() {
		return r.verify(ctx, s)
	}
	return nil
}

// fillStatus fills in numbers, versions and the endpoint.
func (s *scope) fillStatus() {
	st, c := &s.object.Status, s.cluster
	if e := c.Spec.ControlPlaneEndpoint; e.Host != "" {
		st.Endpoint = "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	}
	cp := ptr.Deref(c.Status.ControlPlane, clusterv1.ClusterControlPlaneStatus{})
	st.ControlPlane = newCounts(ptr.Deref(s.object.Spec.ControlPlane.Replicas, 1), cp.ReadyReplicas, cp.UpToDateReplicas)
	if hasUncountedControlPlane(c) {
		st.ControlPlane = v1alpha1.Counts{}
	}
	w := ptr.Deref(c.Status.Workers, clusterv1.WorkersStatus{})
	st.Workers = newCounts(s.wantedWorkers(), w.ReadyReplicas, w.UpToDateReplicas)
	st.Versions.Kubernetes, st.Versions.Workers = "", ""
	if isControlPlaneInitialized(c) { // nothing runs before
		st.Versions.Kubernetes, st.Versions.Workers = lowestVersion(cp.Versions), lowestVersion(w.Versions)
	}
	st.Addons = nil
	if s.addon != nil {
		for _, stage := range s.addon.Status.Stages[:min(len(s.addon.Status.Stages), maxStages)] {
			st.Addons = append(st.Addons, v1alpha1.AddonStatus{
				Name: stage.Name, Done: stage.Phase == stageDone, Message: stage.Message,
			})
		}
	}
	st.Updates = nil
	if s.running != nil && s.catalogue != nil {
		st.Updates = s.catalogue.Updates(s.description.StackProviderName(), s.object.Spec.Stack, *s.running)
	}
}

// wantedWorkers returns how many workers the spec asks for.
func (s *scope) wantedWorkers() (n int32) {
	for _, p := range s.object.Spec.Workers {
		n += ptr.Deref(p.Replicas, 1)
	}
	return n
}

// newCounts returns counts with a zero for what is not reported.
func newCounts(desired int32, ready, updated *int32) v1alpha1.Counts {
	return v1alpha1.Counts{
		Desired: ptr.To(desired), Ready: ptr.To(ptr.Deref(ready, 0)), Updated: ptr.To(ptr.Deref(updated, 0)),
	}
}

// lowestVersion returns the lowest version that machines run. Control planes that do not count machines report none, so
// then all versions count.
func lowestVersion(all []clusterv1.StatusVersion) string {
	var found []version.Kubernetes
	counted := slices.ContainsFunc(all, func(v clusterv1.StatusVersion) bool { return v.Replicas > 0 })
	for _, v := range all {
		if k, err := version.ParseKubernetes(v.Version); err == nil && (v.Replicas > 0 || !counted) {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MinFunc(found, version.CompareKubernetes).String()
}

// isTopologyReconciled reports whether Cluster API has acted on the Cluster as it is now.
func isTopologyReconciled(c *clusterv1.Cluster) bool {
	t := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	return t != nil && t.Status == metav1.ConditionTrue && t.ObservedGeneration == c.Generation
}

// isControlPlaneInitialized reports whether the control plane has ever been up.
func isControlPlaneInitialized(c *clusterv1.Cluster) bool {
	return ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false)
}

// hasUncountedControlPlane reports whether the control plane is of a kind that counts no machines: Cluster API's
// contract does not require it. The number that the spec asks for means nothing then.
func hasUncountedControlPlane(c *clusterv1.Cluster) bool {
	cp := ptr.Deref(c.Status.ControlPlane, clusterv1.ClusterControlPlaneStatus{})
	return isControlPlaneInitialized(c) &&
		meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition) != nil &&
		cp.DesiredReplicas == nil && cp.Replicas == nil && cp.ReadyReplicas == nil && cp.AvailableReplicas == nil &&
		cp.UpToDateReplicas == nil
}

// hasFullEtcd reports whether a member of the cluster's etcd has raised the alarm for no space. Cluster API tells so
// among much that follows from it, and does not replace the only member.
func hasFullEtcd(c *clusterv1.Cluster) bool {
	t := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneMachinesReadyCondition)
	if t == nil || t.Status == metav1.ConditionTrue {
		return false
	}
	_, alarms, ok := strings.Cut(t.Message, "Etcd reports alarms: ")
	alarms, _, _ = strings.Cut(alarms, "\n")
	return ok && strings.Contains(alarms, "NOSPACE")
}

// observeControlPlane reports how the control plane is.
func (s *scope) observeControlPlane() {
	c, want := s.cluster, ptr.Deref(s.object.Spec.ControlPlane.Replicas, 1)
	cp := ptr.Deref(c.Status.ControlPlane, clusterv1.ClusterControlPlaneStatus{})
	m := replicaCounts{cp.DesiredReplicas, cp.Replicas, cp.ReadyReplicas, cp.AvailableReplicas, cp.UpToDateReplicas}
	switch {
	case !isControlPlaneInitialized(c):
		s.conditions.SetFalse(v1alpha1.ConditionControlPlane, v1alpha1.ReasonNotThereYet,
			"the control plane is being made"+conditionDetail(c, clusterv1.ClusterControlPlaneInitializedCondition,
				clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition))
	case hasFullEtcd(c):
		s.stall(v1alpha1.ConditionControlPlane, v1alpha1.ReasonEtcdFull, advice{
			text:  "the cluster's etcd is full (alarm NOSPACE): the cluster takes no changes, only deletions",
			actor: v1alpha1.PlatformOperator,
			next: "delete in the cluster what is not needed, which works; then run etcdctl defrag and etcdctl alarm disarm " +
				"on its control plane (docs/operate, When a cluster's etcd is full)",
		})
	case hasUncountedControlPlane(c) &&
		!meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition):
		s.conditions.SetFalse(v1alpha1.ConditionControlPlane, v1alpha1.ReasonMachinesMissing,
			"the control plane is not available"+conditionDetail(c, clusterv1.ClusterControlPlaneAvailableCondition))
	case hasUncountedControlPlane(c) && isTopologyReconciled(c):
		s.conditions.SetTrue(v1alpha1.ConditionControlPlane, "the control plane is available")
	case !hasUncountedControlPlane(c) && m.hasMissing(want):
		s.conditions.SetFalse(v1alpha1.ConditionControlPlane,
			s.missingReason(v1alpha1.ConditionControlPlane, s.tracked.Stored().Status.ControlPlane, m, want),
			m.readyText("the control plane", want)+conditionDetail(c, clusterv1.ClusterControlPlaneMachinesReadyCondition))
	case m.hasOutdated(want) || !isTopologyReconciled(c):
		s.conditions.SetFalse(v1alpha1.ConditionControlPlane, v1alpha1.ReasonMachinesOutOfDate,
			"machines are brought up to date"+conditionDetail(c, clusterv1.ClusterTopologyReconciledCondition))
	default:
		s.conditions.SetTrue(v1alpha1.ConditionControlPlane, "all machines of the control plane are ready")
	}
}

// observeWorkers reports how the worker pools are.
func (s *scope) observeWorkers() {
	c, want := s.cluster, s.wantedWorkers()
	w := ptr.Deref(c.Status.Workers, clusterv1.WorkersStatus{})
	m := replicaCounts{w.DesiredReplicas, w.Replicas, w.ReadyReplicas, w.AvailableReplicas, w.UpToDateReplicas}
	switch {
	case m.hasMissing(want):
		s.conditions.SetFalse(v1alpha1.ConditionWorkers,
			s.missingReason(v1alpha1.ConditionWorkers, s.tracked.Stored().Status.Workers, m, want),
			m.readyText("the pools", want)+conditionDetail(c, clusterv1.ClusterWorkerMachinesReadyCondition))
	case m.hasOutdated(want) || !isTopologyReconciled(c):
		s.conditions.SetFalse(v1alpha1.ConditionWorkers, v1alpha1.ReasonMachinesOutOfDate,
			"machines are brought up to date"+conditionDetail(c, clusterv1.ClusterTopologyReconciledCondition))
	default:
		s.conditions.SetTrue(v1alpha1.ConditionWorkers, "all machines of all pools are ready")
	}
}

// missingReason tells machines that are still to come from those that were there. was is what the status said before.
func (s *scope) missingReason(condition string, was v1alpha1.Counts, m replicaCounts, want int32) string {
	before := meta.FindStatusCondition(s.tracked.Stored().Status.Conditions, condition)
	if before == nil || ptr.Deref(m.ready, 0) < ptr.Deref(was.Ready, 0) {
		return v1alpha1.ReasonMachinesMissing
	}
	grows := before.Status == metav1.ConditionTrue && want > ptr.Deref(was.Desired, want)
	if grows || before.Status == metav1.ConditionFalse && before.Reason == v1alpha1.ReasonMachinesComing {
		return v1alpha1.ReasonMachinesComing
	}
	return v1alpha1.ReasonMachinesMissing
}

// replicaCounts are the machines of the control plane or of all pools, as Cluster API counts them.
type replicaCounts struct{ desired, existing, ready, available, upToDate *int32 }

// hasMissing reports whether machines are missing, not ready, or too many.
func (m replicaCounts) hasMissing(want int32) bool {
	return ptr.Deref(m.desired, 0) != want || ptr.Deref(m.existing, 0) != want || ptr.Deref(m.ready, 0) != want ||
		ptr.Deref(m.available, 0) != want
}

// hasOutdated reports whether machines are not up to date.
func (m replicaCounts) hasOutdated(want int32) bool { return ptr.Deref(m.upToDate, 0) != want }

// readyText says how many machines are ready, and how many will be deleted.
func (m replicaCounts) readyText(of string, want int32) string {
	ready, there := min(ptr.Deref(m.ready, 0), ptr.Deref(m.available, 0)), ptr.Deref(m.existing, 0)
	if there > want {
		return fmt.Sprintf("%d of %d machines of %s are ready, and %d will go", ready, want, of, there-want)
	}
	return fmt.Sprintf("%d of %d machines of %s are ready", ready, want, of)
}

// probeResult returns what our own probes know of the cluster's API server; nil if that is nothing.
func (r *Reconciler) probeResult(s *scope) *probe.Result {
	if r.Prober == nil || !isControlPlaneInitialized(s.cluster) || !s.cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.Prober.Result(client.ObjectKeyFromObject(s.cluster))
}

func (r *Reconciler) forgetProbes(cluster client.ObjectKey) {
	if r.Prober != nil {
		r.Prober.Forget(cluster)
	}
}

// observeReachability reports whether the cluster's API server answers, to us and to Cluster API, which needs longer to
// notice that it does not.
func (s *scope) observeReachability(own *probe.Result) {
	t := meta.FindStatusCondition(s.cluster.Status.Conditions, clusterv1.ClusterRemoteConnectionProbeCondition)
	switch {
	case !isControlPlaneInitialized(s.cluster) || t == nil:
		s.conditions.SetFalse(v1alpha1.ConditionReachable, v1alpha1.ReasonNotThereYet, "the cluster has no API yet")
	case own != nil && !own.Ready:
		s.conditions.SetFalse(v1alpha1.ConditionReachable, v1alpha1.ReasonUnreachable,
			fmt.Sprintf("the cluster's API has not been ready since %s: %s",
				own.Since.UTC().Format("2006-01-02 15:04:05 UTC"), own.Why))
	case t.Status != metav1.ConditionTrue:
		s.conditions.SetFalse(v1alpha1.ConditionReachable, v1alpha1.ReasonUnreachable,
			fmt.Sprintf("the cluster's API has not answered since %s",
				t.LastTransitionTime.UTC().Format("2006-01-02 15:04:05 UTC")))
	default:
		s.conditions.SetTrue(v1alpha1.ConditionReachable, "the cluster's API answers")
	}
}

// countPools counts the machines of each pool. A pool with zones has several MachineDeployments.
func (r *Reconciler) countPools(ctx context.Context, s *scope) error {
	var l clusterv1.MachineDeploymentList
	if err := r.Client.List(ctx, &l, client.InNamespace(s.object.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.object.Name}); err != nil {
		return err
	}
	s.object.Status.Pools = nil
	for _, p := range s.object.Spec.Workers {
		var ready, updated int32
		for i := range l.Items {
			if l.Items[i].Labels[v1alpha1.PoolLabel] == p.Name {
				ready += ptr.Deref(l.Items[i].Status.ReadyReplicas, 0)
				updated += ptr.Deref(l.Items[i].Status.UpToDateReplicas, 0)
			}
		}
		s.object.Status.Pools = append(s.object.Status.Pools, v1alpha1.PoolStatus{
			Name: p.Name, Counts: newCounts(ptr.Deref(p.Replicas, 1), &ready, &updated),
		})
	}
	return nil
}
