//go:build fault

package local

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

// A control-plane machine that is cut off from the network runs on, but its etcd has no leader any more; the other two
// serve, its node becomes not ready, and once it is connected again all is as before, with the same machines.
func TestFaultPartitionedMachine(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "cut", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3)
	}})
	c.awaitAvailable(t, faultTimeout)
	c.awaitControlPlane(t, faultTimeout, 3, newVersion)
	uids := machineUIDs(t, c)
	before, host, err := p.HostStatus(t.Context(), c.namespace, c.name)
	if err != nil {
		t.Fatal(err)
	}
	for _, victim := range before.Machines { // each once, so the leader is among them
		if !victim.ControlPlane {
			continue
		}
		begin := time.Now()
		if err := host.FailMachine(t.Context(), victim.Name, hostapi.FailPartition); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, faultTimeout, func() error { return isAlone(t, host, victim) })
		alone := time.Since(begin)
		testenv.Eventually(t, faultTimeout, func() error { return writeConfigMap(t, c, victim.Name) })
		written := time.Since(begin)
		testenv.Eventually(t, faultTimeout, func() error { return hasReadiness(t, c, victim.Node, corev1.ConditionUnknown) })
		t.Logf("%s is without leader after %s, the others take writes after %s, its node is not ready after %s", victim.Name,
			alone.Round(time.Millisecond), written.Round(time.Millisecond), time.Since(begin).Round(time.Second))
		if err := isAlone(t, host, victim); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
		if err := host.FailMachine(t.Context(), victim.Name, hostapi.FailContinue); err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		testenv.Eventually(t, faultTimeout, func() error {
			m, err := findMachine(t, host, victim.Name)
			if err == nil && !m.IsRunning() {
				err = fmt.Errorf("%s does not run: %+v", victim.Name, m)
			}
			return err
		})
		testenv.Eventually(t, faultTimeout, func() error { return hasReadiness(t, c, victim.Node, corev1.ConditionTrue) })
		t.Logf("connected again after %s", time.Since(begin).Round(time.Millisecond))
		c.awaitControlPlane(t, time.Minute, 3, newVersion) // which Cluster API says soon
	}
	if names := members(t, c, machineWithStore(t, c)); len(names) != 3 {
		t.Errorf("members of the store: %v, want three", names)
	}
	if diff := cmp.Diff(uids, machineUIDs(t, c)); diff != "" {
		t.Errorf("machines (-before +after):\n%s", diff)
	}
	isDeleted(t, c)
}

// isAlone says whether a machine runs all its processes, while its API server has no etcd that can answer.
func isAlone(t *testing.T, host *hostapi.Client, victim hostapi.MachineStatus) error {
	m, err := findMachine(t, host, victim.Name)
	if err != nil {
		return err
	}
	for _, p := range m.Processes {
		switch {
		case p.Name == "etcd" && p.PID == 0:
			return errors.New("its etcd does not run")
		case p.Name == "kube-apiserver" && p.Ready:
			return errors.New("its API server has an etcd that answers")
		}
	}
	return nil
}

// hasReadiness says whether a node is ready, or not, or nobody knows.
func hasReadiness(t *testing.T, c *cluster, node string, want corev1.ConditionStatus) error {
	n, err := c.workload(t).CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady && x.Status == want {
			return nil
		}
	}
	return fmt.Errorf("node %s has the conditions %v", node, n.Status.Conditions)
}

func findMachine(t *testing.T, host *hostapi.Client, name string) (hostapi.MachineStatus, error) {
	s, err := host.Status(t.Context())
	if err != nil {
		return hostapi.MachineStatus{}, err
	}
	for _, m := range s.Machines {
		if m.Name == name {
			return m, nil
		}
	}
	return hostapi.MachineStatus{}, fmt.Errorf("machine %s is gone", name)
}

func writeConfigMap(t *testing.T, c *cluster, name string) error {
	_, err := c.workload(t).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
