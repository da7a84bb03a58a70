package workloadcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/workload/probe"
)

// observed is a condition after observe. Its reason is "" if it is true.
type observed struct{ Reason, Message string }

func (s *scope) observed(condition string) observed {
	c := s.condition(condition)
	if c.Status == metav1.ConditionTrue {
		c.Reason = ""
	}
	return observed{c.Reason, c.Message}
}

func scaleToThree(s *scope) {
	n := ptr.To[int32](3)
	s.object.Spec.ControlPlane.Replicas = ptr.To[int32](3)
	s.cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: n, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpToDateReplicas: n,
	}
}

// uncountControlPlane makes the control plane one of a kind that counts no machines.
func uncountControlPlane(s *scope, available metav1.ConditionStatus) {
	s.cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{{Version: "v1.36.3"}}}
	s.setClusterCondition(clusterv1.ClusterControlPlaneAvailableCondition, available, "it rains")
}

func TestControlPlane(t *testing.T) {
	n := ptr.To[int32](2)
	for name, c := range map[string]struct {
		change func(*scope)
		want   observed
	}{
		"all are ready": {func(*scope) {}, observed{"", "all machines of the control plane are ready"}},
		"it is not there": {func(s *scope) { s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(false) }, observed{
			v1alpha1.ReasonNotThereYet, "the control plane is being made",
		}},
		"nothing is counted yet": {func(s *scope) { s.cluster.Status.ControlPlane = nil }, observed{
			v1alpha1.ReasonMachinesMissing, "0 of 3 machines of the control plane are ready",
		}},
		"one is not ready": {func(s *scope) { s.cluster.Status.ControlPlane.ReadyReplicas = n }, observed{
			v1alpha1.ReasonMachinesMissing, "2 of 3 machines of the control plane are ready",
		}},
		"one is not available": {func(s *scope) { s.cluster.Status.ControlPlane.AvailableReplicas = n }, observed{
			v1alpha1.ReasonMachinesMissing, "2 of 3 machines of the control plane are ready",
		}},
		"one is missing": {func(s *scope) { s.cluster.Status.ControlPlane.Replicas = n }, observed{
			v1alpha1.ReasonMachinesMissing, "3 of 3 machines of the control plane are ready",
		}},
		"it wants fewer still": {func(s *scope) { s.cluster.Status.ControlPlane.DesiredReplicas = n }, observed{
			v1alpha1.ReasonMachinesMissing, "3 of 3 machines of the control plane are ready",
		}},
		"one is too many": {func(s *scope) { s.cluster.Status.ControlPlane.Replicas = ptr.To[int32](4) }, observed{
			v1alpha1.ReasonMachinesMissing, "3 of 3 machines of the control plane are ready, and 1 will go",
		}},
		"one is old": {func(s *scope) { s.cluster.Status.ControlPlane.UpToDateReplicas = n }, observed{
			v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date",
		}},
		"etcd is full": {
			func(s *scope) {
				s.cluster.Status.ControlPlane.ReadyReplicas = n
				s.setClusterCondition(clusterv1.ClusterControlPlaneMachinesReadyCondition, metav1.ConditionFalse,
					"* Machine a:\n  * InfrastructureReady:\n    * node: database space exceeded\n  * EtcdMemberHealthy: Etcd reports alarms: CORRUPT, NOSPACE\n  * x")
			},
			observed{v1alpha1.ReasonEtcdFull, "the cluster's etcd is full (alarm NOSPACE): the cluster takes no changes, only deletions"},
		},
		"etcd has another alarm": {
			func(s *scope) {
				s.cluster.Status.ControlPlane.ReadyReplicas = n
				s.setClusterCondition(clusterv1.ClusterControlPlaneMachinesReadyCondition, metav1.ConditionFalse,
					"* Machine a:\n  * EtcdMemberHealthy: Etcd reports alarms: CORRUPT\n  * NodeHealthy: NOSPACE")
			},
			observed{v1alpha1.ReasonMachinesMissing, "2 of 3 machines of the control plane are ready: a: Etcd reports alarms: CORRUPT"},
		},
		"what counts is of before": {func(s *scope) { s.cluster.Generation++ }, observed{v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date"}},
		"Cluster API waits": {
			func(s *scope) {
				s.setClusterCondition(clusterv1.ClusterTopologyReconciledCondition, metav1.ConditionFalse, "the hook waits")
			},
			observed{v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date: the hook waits"},
		},
		"Cluster API has not looked at all": {func(s *scope) { s.cluster.Status.Conditions = nil }, observed{
			v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date",
		}},
		"it counts nothing": {func(s *scope) { uncountControlPlane(s, metav1.ConditionTrue) }, observed{"", "the control plane is available"}},
		"it counts nothing, and is away": {func(s *scope) { uncountControlPlane(s, metav1.ConditionFalse) }, observed{
			v1alpha1.ReasonMachinesMissing, "the control plane is not available: it rains",
		}},
		"it counts nothing, nobody knows": {func(s *scope) { uncountControlPlane(s, metav1.ConditionUnknown) }, observed{
			v1alpha1.ReasonMachinesMissing, "the control plane is not available: it rains",
		}},
		"it counts nothing, and is changed": {func(s *scope) { uncountControlPlane(s, metav1.ConditionTrue); s.cluster.Generation++ }, observed{
			v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date",
		}},
		"it counts nothing, and is not there": {
			func(s *scope) {
				uncountControlPlane(s, metav1.ConditionTrue)
				s.cluster.Status.Initialization.ControlPlaneInitialized = nil
			},
			observed{v1alpha1.ReasonNotThereYet, "the control plane is being made"},
		},
		"it has only begun to count": {
			func(s *scope) {
				uncountControlPlane(s, metav1.ConditionTrue)
				s.cluster.Status.ControlPlane.DesiredReplicas = ptr.To[int32](3)
			},
			observed{v1alpha1.ReasonMachinesMissing, "0 of 3 machines of the control plane are ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			scaleToThree(s)
			c.change(s)
			s.observeControlPlane()
			if d := cmp.Diff(c.want, s.observed(v1alpha1.ConditionControlPlane)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		want   observed
	}{
		"all are ready":        {func(*scope) {}, observed{"", "all machines of all pools are ready"}},
		"there are to be none": {func(s *scope) { s.object.Spec.Workers, s.cluster.Status.Workers = nil, nil }, observed{"", "all machines of all pools are ready"}},
		"one is old": {func(s *scope) { s.cluster.Status.Workers.UpToDateReplicas = nil }, observed{
			v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date",
		}},
		"a pool is new": {
			func(s *scope) {
				s.object.Spec.Workers = append(s.object.Spec.Workers, v1alpha1.WorkerPool{Name: "b", Replicas: ptr.To[int32](2)})
			},
			observed{v1alpha1.ReasonMachinesMissing, "1 of 3 machines of the pools are ready"},
		},
		"Cluster API has not looked": {func(s *scope) { s.cluster.Generation++ }, observed{v1alpha1.ReasonMachinesOutOfDate, "machines are brought up to date"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			c.change(s)
			s.observeWorkers()
			if d := cmp.Diff(c.want, s.observed(v1alpha1.ConditionWorkers)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReachability(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		own    *probe.Result
		want   observed
	}{
		"it answers":        {func(*scope) {}, nil, observed{"", "the cluster's API answers"}},
		"it answers us too": {func(*scope) {}, &probe.Result{Ready: true}, observed{"", "the cluster's API answers"}},
		"Cluster API has not noticed yet": {func(*scope) {}, &probe.Result{Since: noon, Why: "no answer within 4s"}, observed{
			v1alpha1.ReasonUnreachable, "the cluster's API has not been ready since 2026-01-02 12:00:00 UTC: no answer within 4s",
		}},
		"it does not": {func(s *scope) {
			s.setClusterCondition(clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionFalse, "")
		}, nil, observed{v1alpha1.ReasonUnreachable, "the cluster's API has not answered since 2026-01-02 11:59:00 UTC"}},
		"nobody knows": {func(s *scope) {
			s.setClusterCondition(clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionUnknown, "")
		}, &probe.Result{Ready: true}, observed{v1alpha1.ReasonUnreachable, "the cluster's API has not answered since 2026-01-02 11:59:00 UTC"}},
		"nobody has asked": {func(s *scope) { s.cluster.Status.Conditions = nil }, nil, observed{v1alpha1.ReasonNotThereYet, "the cluster has no API yet"}},
		"there is nobody to ask": {func(s *scope) { s.cluster.Status.Initialization.ControlPlaneInitialized = nil }, nil, observed{
			v1alpha1.ReasonNotThereYet, "the cluster has no API yet",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			c.change(s)
			s.observeReachability(c.own)
			if d := cmp.Diff(c.want, s.observed(v1alpha1.ConditionReachable)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAddons(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		want   observed
		actor  v1alpha1.Actor
	}{
		"all are healthy":    {func(*scope) {}, observed{"", "all add-ons are there and healthy"}, ""},
		"they are not there": {func(s *scope) { s.addon = nil }, observed{v1alpha1.ReasonNotThereYet, "the add-ons are not there yet"}, ""},
		"nobody has looked": {func(s *scope) { s.addon.Status.Conditions = nil }, observed{v1alpha1.ReasonNotThereYet, "the add-ons are being applied"},
			""},
		"they wait": {func(s *scope) { s.failAddons(csv1.ReasonStageWaiting, "for a node") },
			observed{csv1.ReasonStageWaiting, "the add-ons are being applied: for a node"}, ""},
		"they are stuck": {func(s *scope) { s.failAddons(csv1.ReasonRefused, "no") }, observed{csv1.ReasonRefused, "the add-ons do not get on: no"},
			v1alpha1.PlatformOperator},
		"they are those of an older spec": {func(s *scope) { s.cluster.Generation++ },
			observed{v1alpha1.ReasonProgressing, "the add-ons are being applied for what the spec says now"}, ""},
		"the new ones come first": {func(s *scope) { s.wantRelease(newEntry(t, v2, "v1.36.4")) },
			observed{v1alpha1.ReasonAddonsFirst, "the add-ons of release local-scs-1-36-v2 are applied before its class"}, ""},
		"the new ones come first, and the old are fine": {
			func(s *scope) {
				s.wantRelease(newEntry(t, v2, "v1.36.4"))
				s.addon.Status.Conditions[0].Message = "all are healthy"
			},
			observed{v1alpha1.ReasonAddonsFirst, "the add-ons of release local-scs-1-36-v2 are applied before its class"}, "",
		},
		"the new ones come first, and wait": {func(s *scope) {
			s.wantRelease(newEntry(t, v2, "v1.36.4"))
			s.failAddons(csv1.ReasonStageWaiting, "for a node")
		}, observed{v1alpha1.ReasonAddonsFirst, "the add-ons of release local-scs-1-36-v2 are applied before its class: for a node"}, ""},
		"the new ones come first, and are stuck": {
			func(s *scope) {
				s.wantRelease(newEntry(t, v2, "v1.36.4"))
				s.failAddons(csv1.ReasonStageTimedOut, "a node")
			},
			observed{v1alpha1.ReasonAddonsFirst, "the add-ons of release local-scs-1-36-v2 are applied before its class: a node"}, v1alpha1.PlatformOperator,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			c.change(s)
			s.observeAddons()
			if d := cmp.Diff(c.want, s.observed(v1alpha1.ConditionAddons)); d != "" {
				t.Error(d)
			}
			if got := s.advice[v1alpha1.ConditionAddons].actor; got != c.actor {
				t.Errorf("%q, want %q", got, c.actor)
			}
		})
	}
}

func pool(name string, ready int32, changes ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	m := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: name, Generation: 2, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo", v1alpha1.PoolLabel: "default"},
		},
	}
	m.Spec.Replicas = ptr.To[int32](1)
	m.Status = clusterv1.MachineDeploymentStatus{
		ObservedGeneration: 2, Replicas: &ready, ReadyReplicas: &ready, AvailableReplicas: &ready, UpToDateReplicas: &ready,
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

func TestObserve(t *testing.T) {
	t.Run("all is counted", func(t *testing.T) {
		s := healthyScope(t)
		s.addon.Status.Stages = []csv1.StageStatus{{Name: "cni", Phase: csv1.StageDone}, {Name: "csi", Phase: csv1.StageApplying, Message: "m"}}
		zoned := func(m *clusterv1.MachineDeployment) { m.Labels[clusterv1.ClusterNameLabel] = "other" }
		if err := newReconciler(t, pool("a", 1), pool("b", 2), pool("c", 4, zoned)).observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		st := s.object.Status
		one := newCounts(1, ptr.To[int32](1), ptr.To[int32](1))
		want := v1alpha1.WorkloadClusterStatus{
			Endpoint: "https://[fd00::1]:6443", ControlPlane: one, Workers: one, Versions: v1alpha1.Versions{Kubernetes: "v1.36.3", Workers: "v1.36.3"},
			Pools:  []v1alpha1.PoolStatus{{Name: "default", Counts: newCounts(1, ptr.To[int32](3), ptr.To[int32](3))}},
			Addons: []v1alpha1.AddonStatus{{Name: "cni", Done: true}, {Name: "csi", Message: "m"}},
		}
		got := v1alpha1.WorkloadClusterStatus{
			Endpoint: st.Endpoint, ControlPlane: st.ControlPlane, Workers: st.Workers, Versions: st.Versions, Pools: st.Pools, Addons: st.Addons,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
	t.Run("a control plane that counts nothing", func(t *testing.T) {
		s := healthyScope(t)
		uncountControlPlane(s, metav1.ConditionTrue)
		if err := newReconciler(t).observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		newReconciler(t).summarize(s)
		if st := s.object.Status; st.Phase != v1alpha1.PhaseReady || st.Versions.Kubernetes != "v1.36.3" || st.ControlPlane != (v1alpha1.Counts{}) {
			t.Errorf("%+v", st)
		}
	})
	t.Run("updates are those of the catalogue", func(t *testing.T) {
		s := healthyScope(t)
		r := newReconciler(t, stackWithReleases(t)...)
		if err := r.resolveRelease(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := r.observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]v1alpha1.Update{{KubernetesVersion: "1.36", Version: "v2", Kubernetes: "v1.36.4"}}, s.object.Status.Updates); d != "" {
			t.Error(d)
		}
	})
	t.Run("what is somebody else's says nothing of ours", func(t *testing.T) {
		s := healthyScope(t)
		s.cluster.OwnerReferences = nil
		if err := newReconciler(t).observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{v1alpha1.ConditionControlPlane, v1alpha1.ConditionReachable, v1alpha1.ConditionWorkers, v1alpha1.ConditionAddons} {
			if got := s.observed(c); got.Reason != v1alpha1.ReasonNotThereYet {
				t.Errorf("%s: %+v", c, got)
			}
		}
		if s.object.Status.Endpoint != "" {
			t.Error(s.object.Status.Endpoint)
		}
	})
}
