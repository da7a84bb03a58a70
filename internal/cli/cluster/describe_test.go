package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

const machinePath = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func aMachine(name, phase string, labels ...string) clusterv1.Machine {
	m := clusterv1.Machine{}
	m.APIVersion, m.Kind = clusterv1.GroupVersion.String(), "Machine"
	m.Name, m.Labels = name, map[string]string{clusterv1.ClusterNameLabel: "demo"}
	m.CreationTimestamp.Time = noon.Add(-3 * time.Hour)
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		m.Labels[k] = v
	}
	m.Spec.Version, m.Status.Phase = "v1.36.2", phase
	return m
}

func inTrouble(c *v1alpha1.WorkloadCluster) {
	atWork(c)
	c.CreationTimestamp.Time = noon.Add(-50 * time.Hour)
	c.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", Replicas: count(2)}, {Name: "b", Replicas: count(1)}}
	s := &c.Status
	s.Actor, s.NextStep = v1alpha1.Customer, "lower spec.workers[0].replicas"
	s.Versions = v1alpha1.Versions{Kubernetes: "v1.35.4", WantedKubernetes: "v1.36.2", Workers: "v1.34.9", Release: "r1", WantedRelease: "r2"}
	s.ControlPlane.Updated = count(1)
	s.Pools = []v1alpha1.PoolStatus{{Name: "a", Counts: v1alpha1.Counts{Desired: count(2), Ready: count(1), Updated: count(2)}}}
	s.Addons = []v1alpha1.AddonStatus{{Name: "cni", Done: true}, {Name: "csi", Message: "waits for Deployment csi"}}
	s.Updates = []v1alpha1.Update{{KubernetesVersion: "1.36", Version: "v5", Kubernetes: "v1.36.3"}, {KubernetesVersion: "1.37", Version: "v1"}}
	s.Undo = "The control plane is at v1.36.2 and stays there; the workers can stay."
	s.Conditions = append(s.Conditions,
		metav1.Condition{
			Type: v1alpha1.ConditionWorkers, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMachinesMissing, Message: "1 of 3\x1b[2J is not ready",
		},
		metav1.Condition{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionTrue},
		metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "NoRoom"},
		metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionFalse})
}

func someMachines() []clusterv1.Machine {
	late := aMachine("demo-a-2", "Provisioning", v1alpha1.PoolLabel+"=a")
	late.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "* no room\n* at all"},
	}
	gone := aMachine("demo-old-1", "Running", clusterv1.ClusterTopologyMachineDeploymentNameLabel+"=old")
	gone.DeletionTimestamp = &metav1.Time{Time: noon}
	cp := aMachine("demo-cp-1", "Running", clusterv1.MachineControlPlaneLabel+"=")
	cp.Status.NodeRef.Name = "node-1"
	return []clusterv1.Machine{late, gone, aMachine("demo-a-1", "Running", clusterv1.ClusterTopologyMachineDeploymentNameLabel+"=a"), cp, aMachine("stray", "")}
}

func TestDescribeText(t *testing.T) {
	var b strings.Builder
	for _, tt := range []struct {
		title string
		d     description
	}{
		{"in trouble", description{cluster: aWorkload(v1alpha1.PhaseStalled, "there is no room for the workers", inTrouble), machines: someMachines()}},
		{"new", description{cluster: aWorkload("", "", func(c *v1alpha1.WorkloadCluster) { c.Status = v1alpha1.WorkloadClusterStatus{} })}},
		{"being made, machines not to be seen", description{
			cluster: aWorkload(v1alpha1.PhaseCreating, "it is being made"), noMachinesReason: "you may not see machines in this namespace",
		}},
		{"for the operator", description{cluster: aWorkload(v1alpha1.PhaseDegraded, "the registry is away", acting(v1alpha1.PlatformOperator, ""))}},
		{"ready", description{cluster: aWorkload(v1alpha1.PhaseReady, "all is well")}},
	} {
		tt.d.now, tt.d.hint = noon, func(c string) string { return "polder " + c }
		b.WriteString("== " + tt.title + " ==\n")
		if err := tt.d.print(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "describe.txt", b.String())
}

func TestDescribeCommand(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "all is well"), aMachine("demo-cp-1", "Running", clusterv1.MachineControlPlaneLabel+"="))
	out, errs, code := f.runWithInput("", "describe", "demo")
	if code != exit.OK || errs != "" || !strings.HasPrefix(out, "Cluster default/demo: Ready: all is well\n") || !strings.Contains(out, "└─ demo-cp-1") {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	if q := f.requests[1]; q != "GET "+machinePath+"?labelSelector=cluster.x-k8s.io%2Fcluster-name%3Ddemo" {
		t.Errorf("it asks %s", q)
	}
	f.refuse["GET "+machinePath] = refusal(403, metav1.StatusReasonForbidden, "", "no")
	if out, _, code := f.runWithInput("", "describe", "demo"); code != exit.OK || !strings.Contains(out, "you may not see machines in this namespace\n") {
		t.Errorf("without machines it ends with %d: %s", code, out)
	}
	f.objects["/polder/tenants"] = f.parse(`{items: [{metadata: {name: other}}], continue: x}`)
	f.objects["/polder/tenants?continue=x"] = f.parse(`{items: [{metadata: {name: a}, spec: {namespace: default}}, {metadata: {name: b}, spec: {namespace: default}}]}`)
	f.objects["/polder/machines/b/demo"] = f.parse(`{items: [{name: demo-w-1, pool: w, phase: Pending, kubernetes: v1.36.3, node: n1, message: "wants a disk", creationTimestamp: 2026-01-01T00:00:00Z}]}`)
	if out, _, code := f.runWithInput("", "describe", "demo"); code != exit.OK || !strings.Contains(out, "demo-w-1") || !strings.Contains(out, "v1.36.3, node n1, ") || !strings.Contains(out, "old, wants a disk") {
		t.Errorf("to a member it ends with %d: %s", code, out)
	}
	f.add(aWorkload(v1alpha1.PhaseReady, "", stale))
	if _, errs, code := f.runWithInput("", "describe", "demo"); code != exit.NotReady || errs != "" {
		t.Errorf("of an old spec it ends with %d: %s", code, errs)
	}
	f.expectOutput(exit.Usage, "", `there is no cluster "x" in namespace default; see which there are with: polder get`, "describe", "x")
	f.refuse["GET "+machinePath] = refusal(500, metav1.StatusReasonInternalError, "", "broken")
	if _, errs, code := f.runWithInput("", "describe", "demo"); code != exit.Failure || !strings.HasPrefix(errs, "listing machines: the plane at ") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
}
