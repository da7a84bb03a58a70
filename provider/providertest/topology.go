package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/stack/schema"
)

// checkTopology requires a topology that the release's class understands.
func checkTopology(ctx context.Context, s *suite) []finding {
	return s.forEachCase(func(c testInput) []finding {
		a := s.topology(ctx, c.input())
		if a.problem != "" || a.err != nil {
			return nil // said by checkCallsReturn, or no answer
		}
		out := checkValues(ctx, c.release, "the cluster", a.topology.Variables)
		out = append(out, checkValues(ctx, c.release, "the control plane", a.topology.ControlPlane.Variables)...)
		return append(append(out, checkPools(ctx, c, a.topology)...), checkLabelsAndAnnotations(a.topology)...)
	})
}

// checkPools requires pools that the cluster has, of classes that the release has.
func checkPools(ctx context.Context, c testInput, t provider.Topology) []finding {
	var out []finding
	known := map[string]bool{}
	for _, p := range c.cluster.Spec.Workers {
		known[p.Name] = true
		if _, ok := t.Pools[p.Name]; !ok && len(c.release.Workers) == 0 {
			out = append(out, newFinding("pool %q has no entry, and the release no class of workers that could be its default",
				p.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Pools)) {
		m := t.Pools[name]
		if !known[name] {
			out = append(out, newFinding("there is an entry for pool %q, which the cluster does not have", name))
		}
		if m.Class != "" && !slices.Contains(c.release.Workers, m.Class) {
			out = append(out, newFinding("pool %q is to be of class %q, which the release does not have", name, m.Class))
		}
		out = append(out, checkValues(ctx, c.release, "pool "+name, m.Variables)...)
	}
	return out
}

// checkValues requires values of variables that the release has, such that they can be sent to Cluster API and are
// accepted by it.
func checkValues(ctx context.Context, r provider.Release, of string, all provider.Values) []finding {
	var out []finding
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v, ok := r.Variable(name)
		if !ok {
			out = append(out, newFinding("%s sets the variable %q, which the release does not have", of, name))
			continue
		}
		sent, err := jsonRoundTrip(all[name])
		if err != nil {
			out = append(out, newFinding("%s sets the variable %q to what cannot be written as JSON: %v", of, name, err))
			continue
		}
		if err := schema.Validate(ctx, v.Schema, sent); err != nil && len(v.Schema) > 0 {
			out = append(out, newFinding("%s sets the variable %q to what its schema refuses: %v", of, name, err))
		}
	}
	return out
}

// jsonRoundTrip is a value as it comes out at the other end: numbers, for example, as JSON has them.
func jsonRoundTrip(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("null is no value; leave the variable out")
	}
	return out, nil
}

// checkLabelsAndAnnotations requires labels and annotations that an object can have.
func checkLabelsAndAnnotations(t provider.Topology) []finding {
	var out []finding
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		for _, why := range append(validation.IsQualifiedName(k), validation.IsValidLabelValue(t.Labels[k])...) {
			out = append(out, newFinding("the label %s=%s is none: %s", k, t.Labels[k], why))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Annotations)) {
		for _, why := range validation.IsQualifiedName(k) {
			out = append(out, newFinding("the annotation %s is none: %s", k, why))
		}
	}
	return out
}
