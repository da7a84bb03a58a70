package instant

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/provider/machinetype"
	"github.com/polder-kaas/polder/test/instant/world"
)

// machineReconciler makes each machine a node of its cluster.
type machineReconciler struct{ reconcilerBase }

// Reconcile fulfils the contract of an infrastructure machine. A node needs no finalizer: it is only memory, and
// goes when its machine is found to be gone.
func (r *machineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, gone, err := r.gather(ctx, machineKind, req.NamespacedName)
	if gone {
		r.world.RemoveNode(req.NamespacedName)
	}
	if s == nil {
		return ctrl.Result{}, err
	}
	m, err := r.ownerMachine(ctx, s.object)
	if m == nil {
		return ctrl.Result{}, err
	}
	node := s.newNode(m)
	if err := r.world.AddNode(s.clusterKey, node); err != nil {
		return ctrl.Result{}, fmt.Errorf("joining machine %s: %w", req.Name, err)
	}
	before := s.object.DeepCopy()
	err = errors.Join(
		s.setField(node.ProviderID, "spec", "providerID"),
		s.setField(true, "status", "initialization", "provisioned"),
		s.setField([]any{map[string]any{"type": string(clusterv1.MachineInternalIP), "address": node.Address}}, "status", "addresses"),
	)
	if node.Zone != "" {
		err = errors.Join(err, s.setField(node.Zone, "status", "failureDomain"))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.patchIfChanged(ctx, before, s.object)
}

// ownerMachine is the Machine that an object is for; nil: Cluster API has not said so yet, or it is gone.
func (b reconcilerBase) ownerMachine(ctx context.Context, o *unstructured.Unstructured) (*clusterv1.Machine, error) {
	ref := metav1.GetControllerOf(o)
	if ref == nil || ref.Kind != "Machine" {
		return nil, nil
	}
	m := &clusterv1.Machine{}
	err := b.client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}, m)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return m, nil
}

// newNode is the node of the machine. It has the name of the object, by which it is found again.
func (s *scope) newNode(m *clusterv1.Machine) world.Node {
	name := s.object.GetName()
	return world.Node{
		Name: name, Zone: m.Spec.FailureDomain, Version: m.Spec.Version, Address: nodeAddress(s.clusterKey.String() + "/" + name),
		ProviderID: fmt.Sprintf("instant://%s/%s/%s", s.cluster.Namespace, s.cluster.Name, name), Capacity: s.capacity(),
	}
}

// nodeAddress is one of a network that nobody routes; that two nodes may have the same does no harm.
func nodeAddress(name string) string {
	n := sha256.Sum256([]byte(name))
	return netip.AddrFrom4([4]byte{198, 18 + n[0]&1, n[1], n[2]}).String()
}

// capacity is what the portable name of the machine says.
func (s *scope) capacity() corev1.ResourceList {
	flavor, _, _ := unstructured.NestedString(s.object.Object, "spec", "flavor")
	t, err := machinetype.Parse(flavor)
	if err != nil {
		t = machinetype.Type{CPUs: 1, MemoryMiB: 1024}
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(t.CPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(t.MemoryMiB)<<20, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
	}
}
