// Package counted has the names under which ResourceQuotas count what clusters ask for, and the words for them.
package counted

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Names in ResourceQuotas of what clusters ask for, whether it was made yet or not.
const (
	Clusters      = corev1.ResourceName("count/workloadclusters.polder.dev")
	ControlPlanes = corev1.ResourceName("polder.dev/control-planes")
	Machines      = corev1.ResourceName("polder.dev/machines")
	CPU           = corev1.ResourceName("polder.dev/cpu")
	Memory        = corev1.ResourceName("polder.dev/memory")
	Disk          = corev1.ResourceName("polder.dev/disk")
)

// InClusters are the names of what is counted in each cluster, in the order of messages.
func InClusters() []corev1.ResourceName {
	return []corev1.ResourceName{ControlPlanes, Machines, CPU, Memory, Disk}
}

// All are the names of what is counted.
func All() []corev1.ResourceName { return append([]corev1.ResourceName{Clusters}, InClusters()...) }

// Field returns the field of a Tenant's quota that limits what a name counts.
func Field(name corev1.ResourceName) string {
	switch name {
	case Clusters:
		return "clusters"
	case ControlPlanes:
		return "controlPlanes"
	}
	return strings.TrimPrefix(string(name), "polder.dev/")
}

// Describe returns the words for what a name in a ResourceQuota counts.
func Describe(name corev1.ResourceName) string {
	switch name {
	case Clusters:
		return "clusters"
	case ControlPlanes:
		return "machines of control planes"
	case Machines, "count/machines.cluster.x-k8s.io":
		return "machines"
	case CPU:
		return "CPUs"
	case Memory:
		return "memory"
	case Disk:
		return "disk"
	case "secrets", "count/secrets":
		return "Secrets"
	}
	return strings.TrimPrefix(string(name), "count/")
}
