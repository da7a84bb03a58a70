package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/quota/counted"
	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/provider"
)

// machinePart is a part of a cluster with machines of its own, now and before.
type machinePart struct {
	path *field.Path
	now  v1alpha1.MachineSelection
	was  *v1alpha1.MachineSelection // nil if it is new
}

// machineParts returns all parts of a cluster. A pool is known by its name.
func (q *clusterReview) machineParts() []machinePart {
	controlPlane := machinePart{path: spec.Child("controlPlane"), now: q.object.Spec.ControlPlane.MachineSelection}
	had := map[string]*v1alpha1.MachineSelection{}
	if q.old != nil {
		controlPlane.was = &q.old.Spec.ControlPlane.MachineSelection
		for i := range q.old.Spec.Workers {
			had[q.old.Spec.Workers[i].Name] = &q.old.Spec.Workers[i].MachineSelection
		}
	}
	out := []machinePart{controlPlane}
	for i, p := range q.object.Spec.Workers {
		out = append(out, machinePart{spec.Child("workers").Index(i), p.MachineSelection, had[p.Name]})
	}
	return out
}

// isUnchanged reports whether the machines are written as they were. Amounts are not compared as numbers; see
// isSameSpec.
func (m machinePart) isUnchanged() bool {
	if m.was == nil {
		return false
	}
	a, err := json.Marshal(m.now)
	b, err2 := json.Marshal(m.was)
	return err == nil && err2 == nil && string(a) == string(b)
}

// checkTenant forbids what the tenant of the namespace may not use, unless the cluster has it already.
func (c *Checker) checkTenant(ctx context.Context, q *clusterReview, p *v1alpha1.Provider) error {
	t, err := tenancy.Of(ctx, c.Client, q.object.Namespace)
	if err != nil || t == nil {
		return err
	}
	q.checkAllowedNames(t)
	q.checkAllowedMachines(t, p)
	q.checkAllowedParameters(t)
	return nil
}

// checkAllowedNames checks the provider and the stack.
func (q *clusterReview) checkAllowedNames(t *v1alpha1.Tenant) {
	check := func(at *field.Path, allowed []string, now string, was func(*v1alpha1.WorkloadClusterSpec) string) {
		if len(allowed) == 0 || slices.Contains(allowed, now) || q.old != nil && was(&q.old.Spec) == now {
			return
		}
		q.addError(field.Forbidden(at, fmt.Sprintf("tenant %s may not use %s; choose from %s, or ask the platform operator",
			t.Name, now, strings.Join(allowed, ", "))))
	}
	check(spec.Child("provider"), t.Spec.Allow.Providers, q.object.Spec.Provider,
		func(s *v1alpha1.WorkloadClusterSpec) string { return s.Provider })
	check(spec.Child("stack", "name"), t.Spec.Allow.Stacks, q.object.Spec.Stack.Name,
		func(s *v1alpha1.WorkloadClusterSpec) string { return s.Stack.Name })
}

// checkAllowedMachines checks machine types. A shape is checked by the type that is chosen for it.
func (q *clusterReview) checkAllowedMachines(t *v1alpha1.Tenant, p *v1alpha1.Provider) {
	allowed := t.Spec.Allow.MachineTypes
	if len(allowed) == 0 {
		return
	}
	d := describeProvider(p)
	for _, part := range q.machineParts() {
		if part.isUnchanged() {
			continue
		}
		at := part.path.Child("machineType")
		if part.now.MachineType == "" && part.now.Machine == nil {
			q.addError(field.Required(at, fmt.Sprintf("tenant %s may have some types of machines only; choose from %s", t.Name,
				strings.Join(allowed, ", "))))
			continue
		}
		name, err := d.ChooseMachineType(part.now)
		if err != nil {
			continue // the provider says so
		}
		names := append([]string{name}, part.now.MachineType)
		for _, m := range d.MachineTypes {
			if m.Name == name {
				names = append(names, m.Portable)
			}
		}
		if !slices.ContainsFunc(names, func(n string) bool { return n != "" && slices.Contains(allowed, n) }) {
			q.addError(field.Forbidden(at, fmt.Sprintf(
				"tenant %s may not have machines of type %s; choose from %s, or ask the platform operator", t.Name, name,
				strings.Join(allowed, ", "))))
		}
	}
}

// checkAllowedParameters checks the values of parameters.
func (q *clusterReview) checkAllowedParameters(t *v1alpha1.Tenant) {
	for _, a := range t.Spec.Allow.Parameters {
		value, ok := q.object.Spec.Parameters[a.Name]
		if !ok || q.old != nil && isSameJSON(q.old.Spec.Parameters[a.Name].Raw, value.Raw) {
			continue
		}
		if slices.ContainsFunc(a.Values, func(v provider.JSON) bool { return isSameJSON(v.Raw, value.Raw) }) {
			continue
		}
		at := spec.Child("parameters", a.Name)
		if len(a.Values) == 0 {
			q.addError(field.Forbidden(at, fmt.Sprintf("tenant %s may not set it; leave it out", t.Name)))
			continue
		}
		var values []string
		for _, v := range a.Values {
			values = append(values, string(v.Raw))
		}
		q.addError(field.Forbidden(at, fmt.Sprintf("tenant %s may not have this value; choose from %s, or ask the platform operator",
			t.Name, strings.Join(values, ", "))))
	}
}

// isSameJSON reports whether two values mean the same.
func isSameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// describeProvider returns what a provider says of its machines.
func describeProvider(p *v1alpha1.Provider) provider.Description {
	return provider.Description{Name: p.Name, MachineTypes: p.Status.MachineTypes, AnyShape: p.Status.AnyShape}
}

// checkAskedQuota refuses a cluster that asks for more than is left, in words. Of a new one the API server charges the
// quota again.
func (c *Checker) checkAskedQuota(ctx context.Context, q *clusterReview) error {
	var l corev1.ResourceQuotaList
	if err := c.Client.List(ctx, &l, client.InNamespace(q.object.Namespace)); err != nil {
		return fmt.Errorf("reading the quota of namespace %s: %w", q.object.Namespace, err)
	}
	if slices.ContainsFunc(l.Items, func(r corev1.ResourceQuota) bool { return quota.LimitsSizes(&r) }) {
		q.checkSizesGiven()
	}
	want, was := quota.Usage(&q.object.Spec, q.describe), corev1.ResourceList{}
	if q.old != nil {
		was = quota.Usage(&q.old.Spec, q.describe)
	}
	limited := func(r corev1.ResourceQuota) bool {
		return slices.ContainsFunc(counted.All(), func(n corev1.ResourceName) bool { _, ok := r.Spec.Hard[n]; return ok })
	}
	if len(quota.Difference(want, was)) == 0 || !slices.ContainsFunc(l.Items, limited) {
		return nil
	}
	fits := func(others corev1.ResourceList) bool {
		for i := range l.Items {
			for _, why := range quota.Exceeded(&l.Items[i], others, was, want) {
				q.addError(field.Forbidden(spec, fmt.Sprintf(
					"%s (ResourceQuota %s of namespace %s): ask for less, delete what is not needed, or ask the platform operator for a larger quota",
					why, l.Items[i].Name, q.object.Namespace)))
			}
		}
		return len(q.errs) == 0 && !q.dryRun && q.object.Name != "" // a generated name comes later
	}
	asked := quota.Stored{Usage: want}
	if q.old != nil {
		asked.Generation = q.old.Generation
	}
	return c.Reservations.Reserve(ctx, q.object.Namespace, q.object.Name, asked,
		func(ctx context.Context) (map[string]quota.Stored, error) { return c.readUsage(ctx, q) }, fits)
}

// describe returns what is known of a provider's machines.
func (q *clusterReview) describe(name string) (provider.Description, bool) {
	i := slices.IndexFunc(q.providers, func(p v1alpha1.Provider) bool { return p.Name == name })
	if i < 0 {
		return provider.Description{}, false
	}
	return describeProvider(&q.providers[i]), true
}

// readUsage returns what the clusters of a namespace ask for, as they are stored.
func (c *Checker) readUsage(ctx context.Context, q *clusterReview) (map[string]quota.Stored, error) {
	l := &unstructured.UnstructuredList{} // one that cannot be decoded counts, too
	l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkloadClusterList"))
	if err := c.Live.List(ctx, l, client.InNamespace(q.object.Namespace)); err != nil {
		return nil, fmt.Errorf("reading the clusters of namespace %s: %w", q.object.Namespace, err)
	}
	out := map[string]quota.Stored{}
	for i := range l.Items {
		o := &l.Items[i]
		out[o.GetName()] = quota.Stored{Usage: quota.Usage(quota.ReadSpec(o), q.describe), Generation: o.GetGeneration()}
	}
	return out, nil
}

// checkSizesGiven requires that all machines have a size that can be counted.
func (q *clusterReview) checkSizesGiven() {
	for _, part := range q.machineParts() {
		if part.isUnchanged() || part.now.MachineType != "" || part.now.Machine != nil {
			continue // of a type or shape that is not there, the provider says so
		}
		q.addError(field.Required(part.path.Child("machineType"),
			"the quota of this namespace counts how large machines are; write a type, for example SCS-2V-4, or a machine with cpu and memory"))
	}
}
