package nodelabels

import (
	"testing"

	"sigs.k8s.io/cluster-api/util/labels"
)

// IsSyncedToNode says the same as Cluster API does.
func TestIsSyncedToNode(t *testing.T) {
	for key, want := range map[string]bool{
		"team":                                   true,
		"Team_a.b-c":                             true,
		"example.com/team":                       true,
		"example.de/team":                        true,
		"example.in/team":                        true,
		"polder.dev/pool":                        true,
		"cilium.io/no-schedule":                  true,
		"a.cilium.io/x":                          true,
		"node-role.kubernetes.io/gpu":            true,
		"node-restriction.kubernetes.io/x":       true,
		"a.node-restriction.kubernetes.io/x":     true,
		"node.cluster.x-k8s.io/x":                true,
		"a.node.cluster.x-k8s.io/x":              true,
		"kubernetes.io/arch":                     false,
		"node.kubernetes.io/instance-type":       false,
		"topology.kubernetes.io/zone":            false,
		"k8s.io/x":                               false,
		"cluster.x-k8s.io/cluster-name":          false,
		"topology.cluster.x-k8s.io/owned":        false,
		"karpenter.io/x":                         false,
		"io/x":                                   false,
		"xnode-restriction.kubernetes.io/x":      false,
		"node-restriction.kubernetes.io.evil/x":  true,
		"":                                       false,
		"/x":                                     false,
		"example.com/a/b":                        false,
		"node-role.kubernetes.io":                true, // a name without a domain
		"subdomain.node-role.kubernetes.io/role": false,
	} {
		t.Run(key, func(t *testing.T) {
			if got := IsSyncedToNode(key); got != want {
				t.Errorf("%t, want %t", got, want)
			}
			_, theirs := labels.GetManagedLabels(map[string]string{key: "v"}, AdditionalSyncMachineLabels()...)[key]
			if theirs != want {
				t.Errorf("Cluster API: %t, want %t", theirs, want)
			}
		})
	}
}
