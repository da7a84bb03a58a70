// Package quota knows what namespaces of customers may hold: the ResourceQuota that each gets, and what ResourceQuotas,
// whoever wrote them, say about machines. Kubernetes counts and refuses; this package only makes early and readable
// what would otherwise be found out late.
package quota

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota/counted"
	"github.com/polder-kaas/polder/internal/topology"
)

// Names in ResourceQuotas of what clusters are made of.
const (
	Machines = corev1.ResourceName("count/machines.cluster.x-k8s.io")

	secrets      = corev1.ResourceName("secrets")
	countSecrets = corev1.ResourceName("count/secrets")
)

// Default returns the ResourceQuota of a customer's namespace. It counts every kind that customers may create there
// with the roles they are given, and what Cluster API makes for them. A cluster takes about ten Secrets and one for
// each machine, which is twice as many while machines are replaced.
func Default(namespace string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DefaultQuotaName}}
	q.Spec.Hard = corev1.ResourceList{}
	for name, most := range map[corev1.ResourceName]int64{
		counted.Clusters:                      defaultClusters,
		"count/kubeconfigrequests.polder.dev": 50,
		"count/clusters.cluster.x-k8s.io":     defaultClusters,
		Machines:                              defaultMachines,

		countSecrets:                                   500,
		"count/configmaps":                             100,
		"count/serviceaccounts":                        20,
		"count/leases.coordination.k8s.io":             50,
		"count/roles.rbac.authorization.k8s.io":        50,
		"count/rolebindings.rbac.authorization.k8s.io": 50,
	} {
		q.Spec.Hard[name] = *resource.NewQuantity(most, resource.DecimalSI)
	}
	return q
}

// MachinesNeeded returns how many machines a cluster has at most while they are replaced: Cluster API makes a new one
// before it deletes an old one, in the control plane and in each part of a pool.
func MachinesNeeded(o *v1alpha1.WorkloadCluster) int64 {
	n := int64(ptr.Deref(o.Spec.ControlPlane.Replicas, 1)) + 1
	for _, pool := range o.Spec.Workers {
		for _, part := range topology.SplitByZone(pool) {
			if part.Replicas > 0 {
				n += int64(part.Replicas) + 1
			}
		}
	}
	return n
}

// MachineLimit is the lowest limit of machines in a namespace.
type MachineLimit struct {
	Quota string // the name of the ResourceQuota
	Most  int64
}

// LimitOfMachines returns the lowest limit of machines in a namespace; nil if there is none. A quota that counts those
// that clusters ask for, too, leaves room to replace them.
func LimitOfMachines(ctx context.Context, c client.Reader, namespace string) (*MachineLimit, error) {
	var l corev1.ResourceQuotaList
	if err := c.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("reading the quota of namespace %s: %w", namespace, err)
	}
	var lowest *MachineLimit
	for i := range l.Items {
		most, ok := l.Items[i].Spec.Hard[Machines]
		if _, asked := l.Items[i].Spec.Hard[counted.Machines]; asked {
			continue
		}
		if ok && (lowest == nil || most.Value() < lowest.Most) {
			lowest = &MachineLimit{Quota: l.Items[i].Name, Most: most.Value()}
		}
	}
	return lowest, nil
}

// Exhausted says in one clause which ResourceQuota of a namespace lets nothing more be made of what clusters need; ""
// if none is used up. Machines count only if one is to be made.
func Exhausted(ctx context.Context, c client.Reader, namespace string, machineToMake bool) (string, error) {
	var l corev1.ResourceQuotaList
	if err := c.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("reading the quota of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(l.Items, func(a, b corev1.ResourceQuota) int { return strings.Compare(a.Name, b.Name) })
	for i := range l.Items {
		q := &l.Items[i]
		for _, name := range []corev1.ResourceName{Machines, secrets, countSecrets} {
			most, ok := q.Status.Hard[name]
			used := q.Status.Used[name]
			if ok && used.Cmp(most) >= 0 && (name != Machines || machineToMake) {
				return fmt.Sprintf("ResourceQuota %s of namespace %s allows %s %s, and there are %s", q.Name, namespace,
					most.String(), counted.Describe(name), used.String()), nil
			}
		}
	}
	return "", nil
}
