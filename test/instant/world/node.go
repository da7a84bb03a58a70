package world

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Node is a machine as its cluster knows it.
type Node struct {
	Name, ProviderID, Address, Zone string
	Version                         string // of Kubernetes
	Capacity                        corev1.ResourceList
}

// AddNode adds a node to a cluster, where it is ready at once. One that is there stays as it is.
func (w *World) AddNode(cluster types.NamespacedName, n Node) error {
	w.mu.Lock()
	s := w.getOrCreateCluster(cluster).store
	w.nodeClusters[types.NamespacedName{Namespace: cluster.Namespace, Name: n.Name}] = cluster
	w.mu.Unlock()
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(n.toObject())
	if err != nil {
		return err
	}
	_, err = s.change(nodeID(n.Name), func(old map[string]any) (map[string]any, error) {
		if old != nil {
			return old, nil
		}
		return made, nil
	})
	return err
}

// RemoveNode removes the node of a machine from its cluster, whichever that is.
func (w *World) RemoveNode(machine types.NamespacedName) {
	w.mu.Lock()
	home, ok := w.nodeClusters[machine]
	delete(w.nodeClusters, machine)
	c := w.clusters[home]
	w.mu.Unlock()
	if !ok || c == nil {
		return
	}
	// The error is ignored: if the node is not there, Cluster API was faster.
	_, _ = c.store.change(nodeID(machine.Name), func(map[string]any) (map[string]any, error) { return nil, nil })
}

func nodeID(name string) id { return id{resource: "nodes", name: name} }

func (n Node) toObject() *corev1.Node {
	now := metav1.Time{Time: time.Now().UTC().Truncate(time.Second)}
	o := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
	o.Name = n.Name
	o.Labels = map[string]string{corev1.LabelHostname: n.Name}
	if n.Zone != "" {
		o.Labels[corev1.LabelTopologyZone] = n.Zone
	}
	o.Spec.ProviderID = n.ProviderID
	o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Address}}
	o.Status.Capacity, o.Status.Allocatable = n.Capacity, n.Capacity
	o.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: n.Version, OperatingSystem: "linux", OSImage: "instant", ContainerRuntimeVersion: "instant://1"}
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason string) {
		o.Status.Conditions = append(o.Status.Conditions, corev1.NodeCondition{Type: t, Status: s, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now})
	}
	condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
	condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory")
	condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure")
	condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID")
	return o
}
