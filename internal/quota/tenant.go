package quota

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota/counted"
)

// What a tenant may have of that which its quota does not say.
const (
	defaultClusters = 20
	defaultMachines = 100
)

// ForTenant returns the ResourceQuota of a tenant's namespace. It counts what clusters ask for, and as the default one
// does every kind that can be created there. Of what Cluster API makes it allows as much as the clusters need at most:
// twice their machines while they are replaced, and Secrets for all of them.
func ForTenant(t *v1alpha1.Tenant) *corev1.ResourceQuota {
	q := Default(t.NamespaceName())
	q.Name = v1alpha1.TenantQuotaName
	count := func(name corev1.ResourceName, n int64) {
		q.Spec.Hard[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	of := t.Spec.Quota
	clusters := int64(ptr.Deref(of.Clusters, defaultClusters))
	machines := int64(ptr.Deref(of.Machines, defaultMachines))
	count(counted.Clusters, clusters)
	count("count/clusters.cluster.x-k8s.io", clusters)
	count(counted.Machines, machines)
	count(Machines, 2*machines)
	count(countSecrets, max(500, 20*clusters+5*machines))
	count("count/serviceaccounts", int64(len(t.Spec.Robots))+5)
	if of.ControlPlanes != nil {
		count(counted.ControlPlanes, int64(*of.ControlPlanes))
	}
	if of.CPU != nil {
		count(counted.CPU, int64(*of.CPU))
	}
	if of.Memory != nil {
		q.Spec.Hard[counted.Memory] = of.Memory.DeepCopy()
	}
	if of.Disk != nil {
		q.Spec.Hard[counted.Disk] = of.Disk.DeepCopy()
	}
	return q
}

// LimitsSizes reports whether a ResourceQuota limits what depends on the size of machines.
func LimitsSizes(q *corev1.ResourceQuota) bool {
	for _, name := range []corev1.ResourceName{counted.CPU, counted.Memory, counted.Disk} {
		if _, ok := q.Spec.Hard[name]; ok {
			return true
		}
	}
	return false
}

// Exceeded says in one clause for each what a cluster may not ask for in a namespace with this ResourceQuota. others is
// what all other clusters ask for, was what this one had, want what it asks for. To ask for less is always possible.
func Exceeded(q *corev1.ResourceQuota, others, was, want corev1.ResourceList) []string {
	var out []string
	for _, name := range counted.All() {
		most, limited := q.Spec.Hard[name]
		used, more := others[name].DeepCopy(), want[name].DeepCopy()
		used.Add(was[name])
		more.Sub(was[name])
		if !limited || more.Sign() <= 0 {
			continue
		}
		sum := used.DeepCopy()
		sum.Add(more)
		if sum.Cmp(most) > 0 {
			out = append(out, fmt.Sprintf("%s of %s %s are used, and this asks for %s more", used.String(), most.String(),
				counted.Describe(name), more.String()))
		}
	}
	return out
}
