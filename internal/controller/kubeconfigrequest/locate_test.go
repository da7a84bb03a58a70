package kubeconfigrequest

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestLocateChecks(t *testing.T) {
	leaving := ptr.To(metav1.NewTime(at))
	for title, c := range map[string]struct {
		change       func(*clusterState)
		reason, want string
	}{
		"ready": {func(*clusterState) {}, "", ""},
		"a wrong request": {func(v *clusterState) { v.request.Spec.Username, v.workloadCluster = "", nil }, v1alpha1.ReasonRequestInvalid,
			"spec.username"},
		"no WorkloadCluster": {func(v *clusterState) { v.workloadCluster, v.cluster = nil, nil }, v1alpha1.ReasonClusterMissing,
			"there is no WorkloadCluster prod in namespace team; create it"},
		"a WorkloadCluster on its way out": {func(v *clusterState) { v.workloadCluster.DeletionTimestamp, v.cluster = leaving, nil },
			v1alpha1.ReasonClusterMissing, "WorkloadCluster prod is being deleted"},
		"no Cluster yet":      {func(v *clusterState) { v.cluster = nil }, v1alpha1.ReasonClusterNotReady, "not made yet"},
		"a Cluster of nobody": {func(v *clusterState) { v.cluster.OwnerReferences = nil }, v1alpha1.ReasonClusterMissing, "delete that Cluster"},
		"a Cluster of one that was called so": {func(v *clusterState) { v.workloadCluster.UID = "another" }, v1alpha1.ReasonClusterMissing,
			"does not belong to the WorkloadCluster"},
		"a Cluster that is owned, not controlled": {func(v *clusterState) { v.cluster.OwnerReferences[0].Controller = nil }, v1alpha1.ReasonClusterMissing,
			"does not belong"},
		"a Cluster on its way out": {func(v *clusterState) { v.cluster.DeletionTimestamp = leaving }, v1alpha1.ReasonClusterMissing,
			"Cluster prod is being deleted"},
		"not initialized": {func(v *clusterState) { v.cluster.Status.Initialization.ControlPlaneInitialized = nil },
			v1alpha1.ReasonClusterNotReady, "not initialized"},
		"known to be not initialized": {func(v *clusterState) { v.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(false) },
			v1alpha1.ReasonClusterNotReady, "not initialized"},
		"no endpoint": {func(v *clusterState) { v.cluster.Spec.ControlPlaneEndpoint.Port = 0 }, v1alpha1.ReasonClusterNotReady,
			"controlPlaneEndpoint"},
	} {
		t.Run(title, func(t *testing.T) {
			v := clusterState{request: newRequest(), workloadCluster: newWorkloadCluster(), cluster: newCluster()}
			c.change(&v)
			var got *obstacle
			for _, check := range locateChecks {
				if got = check(v); got != nil {
					break
				}
			}
			if got == nil {
				got = &obstacle{}
			}
			if got.reason != c.reason || !strings.Contains(got.message, c.want) {
				t.Errorf("obstacle %+v, want %s: %s", got, c.reason, c.want)
			}
		})
	}
}

func TestEndpointOf(t *testing.T) {
	for title, c := range map[string]struct {
		host string
		port int32
		want string
	}{
		"an address":       {"192.0.2.1", 6443, "https://192.0.2.1:6443"},
		"an IPv6 address":  {"2001:db8::1", 443, "https://[2001:db8::1]:443"},
		"a name":           {"api.example.org", 6443, "https://api.example.org:6443"},
		"nothing":          {"", 0, ""},
		"no port":          {"192.0.2.1", 0, ""},
		"a path":           {"evil.example.org/x?", 6443, ""},
		"a user":           {"me@evil.example.org", 6443, ""},
		"a line break":     {"a\nb", 6443, ""},
		"what is too long": {strings.Repeat("a", 510), 6443, ""},
		"a fragment":       {"evil.example.org#", 6443, ""},
	} {
		t.Run(title, func(t *testing.T) {
			got := endpointOf(newCluster(func(k *clusterv1.Cluster) {
				k.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: c.host, Port: c.port}
			}))
			if got != c.want {
				t.Errorf("endpoint %q, want %q", got, c.want)
			}
		})
	}
}
