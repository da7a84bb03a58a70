package quota

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota/counted"
	"github.com/polder-kaas/polder/provider"
)

// Describe returns what is known of a provider; false if there is none of that name.
type Describe func(name string) (provider.Description, bool)

// Usage returns how much a cluster asks for, itself included. Machines whose size nobody knows count as machines alone:
// admission lets no such cluster into a namespace where sizes are limited.
func Usage(spec *v1alpha1.WorkloadClusterSpec, describe Describe) corev1.ResourceList {
	d, _ := describe(spec.Provider)
	var controlPlanes, machines, cpus, mib, gb int64
	add := func(n int64, m v1alpha1.MachineSelection) {
		machines += n
		if s, ok := d.ChosenShape(m); ok {
			cpus, mib, gb = cpus+n*int64(s.CPUs), mib+n*int64(s.MemoryMiB), gb+n*int64(s.DiskGB)
		}
	}
	controlPlanes = int64(ptr.Deref(spec.ControlPlane.Replicas, 1))
	add(controlPlanes, spec.ControlPlane.MachineSelection)
	for _, p := range spec.Workers {
		add(int64(ptr.Deref(p.Replicas, 1)), p.MachineSelection)
	}
	return corev1.ResourceList{
		counted.Clusters:      *resource.NewQuantity(1, resource.DecimalSI),
		counted.ControlPlanes: *resource.NewQuantity(controlPlanes, resource.DecimalSI),
		counted.Machines:      *resource.NewQuantity(machines, resource.DecimalSI),
		counted.CPU:           *resource.NewQuantity(cpus, resource.DecimalSI),
		counted.Memory:        *resource.NewQuantity(mib<<20, resource.BinarySI),
		counted.Disk:          *resource.NewQuantity(gb*1e9, resource.DecimalSI),
	}
}

// Difference returns how much more one amount is than another, for each name. What is less is nothing.
func Difference(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range a {
		q = q.DeepCopy()
		q.Sub(b[name])
		if q.Sign() > 0 {
			out[name] = q
		}
	}
	return out
}

// amount is what the schema lets be written for memory and disk. It is checked again for objects that were stored
// around the schema: to read 1e2000000000 takes all memory there is.
var amount = regexp.MustCompile(`^[0-9]{1,24}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`)

// ReadSpec reads what Usage needs from a WorkloadCluster as it is stored. What cannot be read is left out.
func ReadSpec(u *unstructured.Unstructured) *v1alpha1.WorkloadClusterSpec {
	s := &v1alpha1.WorkloadClusterSpec{}
	s.Provider, _, _ = unstructured.NestedString(u.Object, "spec", "provider")
	cp, _, _ := unstructured.NestedMap(u.Object, "spec", "controlPlane")
	s.ControlPlane.Replicas, s.ControlPlane.MachineSelection = readReplicas(cp), readSelection(cp)
	workers, _, _ := unstructured.NestedSlice(u.Object, "spec", "workers")
	for _, w := range workers {
		pool, _ := w.(map[string]any)
		s.Workers = append(s.Workers,
			v1alpha1.WorkerPool{Replicas: readReplicas(pool), MachineSelection: readSelection(pool)})
	}
	return s
}

// readReplicas reads a number of machines; nil if there is none.
func readReplicas(part map[string]any) *int32 {
	n, ok, err := unstructured.NestedInt64(part, "replicas")
	if !ok || err != nil || n < 0 || n > 1<<20 {
		return nil
	}
	return ptr.To(int32(n))
}

// readSelection reads what machines are like.
func readSelection(part map[string]any) (m v1alpha1.MachineSelection) {
	m.MachineType, _, _ = unstructured.NestedString(part, "machineType")
	shape, ok, err := unstructured.NestedMap(part, "machine")
	if !ok || err != nil {
		return m
	}
	m.Machine = &v1alpha1.MachineShape{}
	if n, ok, err := unstructured.NestedInt64(shape, "cpu"); ok && err == nil && n >= 0 && n <= 1<<20 {
		m.Machine.CPU = int32(n)
	}
	if q := readAmount(shape["memory"]); q != nil {
		m.Machine.Memory = *q
	}
	m.Machine.Disk = readAmount(shape["disk"])
	return m
}

// readAmount reads an amount that is written as text or as a number of bytes; nil if it is neither.
func readAmount(v any) *resource.Quantity {
	switch v := v.(type) {
	case int64:
		return resource.NewQuantity(v, resource.BinarySI)
	case string:
		if !amount.MatchString(v) {
			return nil
		}
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return nil
		}
		return &q
	}
	return nil
}
