package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// newPatch returns what makes of a cluster what is wanted, as a JSON merge patch; nil if it is that already. Fields of
// a newer plane, which are not known here, stay as they are, unless they are in a list of which something else changes.
// So do labels and annotations that were never ours.
func newPatch(is, wanted *v1alpha1.WorkloadCluster, was *model) (map[string]any, error) {
	before, err := toMap(&is.Spec)
	if err != nil {
		return nil, err
	}
	after, err := toMap(&wanted.Spec)
	if err != nil {
		return nil, err
	}
	patch, meta := map[string]any{}, map[string]any{}
	if spec := difference(before, after); len(spec) > 0 {
		patch["spec"] = spec
	}
	if labels := differenceOfOwn(is.Labels, wanted.Labels, was.Labels); len(labels) > 0 {
		meta["labels"] = labels
	}
	if annotations := differenceOfOwn(is.Annotations, wanted.Annotations, was.Annotations); len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if len(meta) > 0 {
		patch["metadata"] = meta
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}

func toMap(spec *v1alpha1.WorkloadClusterSpec) (out map[string]any, err error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing the spec: %w", err)
	}
	return out, json.Unmarshal(b, &out)
}

// difference is the merge patch that makes the second of the first.
func difference(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for name, b := range before {
		a, ok := after[name]
		inner, isMap := b.(map[string]any)
		other, isMapToo := a.(map[string]any)
		switch {
		case !ok:
			out[name] = nil
		case isMap && isMapToo:
			if d := difference(inner, other); len(d) > 0 {
				out[name] = d
			}
		case !reflect.DeepEqual(a, b):
			out[name] = a
		}
	}
	for name, a := range after {
		if _, ok := before[name]; !ok {
			out[name] = a
		}
	}
	return out
}

func differenceOfOwn(is, wanted, was map[string]string) map[string]any {
	out := map[string]any{}
	for name, v := range wanted {
		if now, ok := is[name]; !ok || now != v {
			out[name] = v
		}
	}
	for name := range was {
		_, stays := wanted[name]
		if _, ok := is[name]; ok && !stays {
			out[name] = nil
		}
	}
	return out
}
