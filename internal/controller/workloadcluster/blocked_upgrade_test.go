package workloadcluster

import (
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
)

// While an upgrade of Kubernetes is under way, no other one is begun: the add-ons of both would be mixed.
func TestBlockedByUpgrade(t *testing.T) {
	v := func(all ...string) (out []clusterv1.StatusVersion) {
		for _, s := range all {
			out = append(out, clusterv1.StatusVersion{Version: s, Replicas: 1})
		}
		return out
	}
	for name, c := range map[string]struct {
		wanted            string
		young             bool // the control plane was never initialized
		machines, workers []clusterv1.StatusVersion
		want              bool
	}{
		"all machines are there":            {"v1.37.0", false, v("v1.36.3"), v("v1.36.3"), false},
		"a control plane is on its way":     {"v1.37.0", false, v("v1.35.7", "v1.36.3"), v("v1.36.3"), true},
		"a worker is on its way":            {"v1.37.0", false, v("v1.36.3"), v("v1.36.3", "v1.35.7"), true},
		"a release of the same Kubernetes":  {"v1.36.3", false, v("v1.35.7"), v("v1.35.7"), false},
		"there are no workers":              {"v1.37.0", false, v("v1.36.3"), nil, false},
		"there is nothing that would mind":  {"v1.37.0", true, v("v1.35.7"), nil, false},
		"a patch while another is made":     {"v1.36.4", false, v("v1.36.2"), v("v1.36.3"), true},
		"a patch while no other is made":    {"v1.36.4", false, v("v1.36.3"), v("v1.36.3"), false},
		"nobody has counted the versions":   {"v1.37.0", false, nil, nil, false},
		"both are on their way, both older": {"v1.37.0", false, v("v1.35.7"), v("v1.35.7"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{cluster: &clusterv1.Cluster{}, wanted: lineage.CatalogueEntry{Object: &csv1.ClusterStackRelease{}}}
			s.wanted.Object.Status.KubernetesVersion = c.wanted
			s.cluster.Spec.Topology.Version = "v1.36.3"
			s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(!c.young)
			s.cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: c.machines}
			s.cluster.Status.Workers = &clusterv1.WorkersStatus{Versions: c.workers}
			if got := s.isBlockedByUpgrade(); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
