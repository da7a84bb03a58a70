//go:build fault

package stack

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

const upgradeTimeout = 12 * time.Minute

// A cluster moves from the release for one minor to that for the next, and stays hardened.
func TestFaultUpgrade(t *testing.T) {
	p := shared.Get(t)
	mgmt, ns := p.Client(t), p.CreateNamespace(t)
	old, next := release(t, "local/scs", "1.36", "v1"), release(t, "local/scs", "1.37", "v0-sha.abc1234")
	install(t, mgmt, old, ns)
	install(t, mgmt, next, ns)
	c, workload := makeCluster(t, mgmt, ns, old)
	before := c.DeepCopy()
	c.Spec.Topology.ClassRef.Name = next.Name.Class()
	c.Spec.Topology.Version = next.Metadata.Versions.Kubernetes
	if err := mgmt.Patch(t.Context(), c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, upgradeTimeout, func() error { return nodesAre(t, workload, next.Metadata.Versions.Kubernetes) })
	await(t, mgmt, c, upgradeTimeout, available)
	isHardened(t, testenv.WorkloadConfig(t, mgmt, ns, c.Name), workload)
}

func nodesAre(t *testing.T, workload client.Client, version string) error {
	var nodes corev1.NodeList
	if err := workload.List(t.Context(), &nodes); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if v := n.Status.NodeInfo.KubeletVersion; v != version {
			return fmt.Errorf("node %s is of version %s", n.Name, v)
		}
	}
	if len(nodes.Items) != 2 {
		return fmt.Errorf("there are %d nodes", len(nodes.Items))
	}
	return nil
}
