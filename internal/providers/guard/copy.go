package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/polder-kaas/polder/provider"
)

// copyInput returns a deep copy of an input: a provider that changes what it is given, perhaps long after its
// caller has gone on, changes nothing else.
func copyInput(in provider.Input) provider.Input {
	in.Cluster = in.Cluster.DeepCopy()
	in.Release.Workers = slices.Clone(in.Release.Workers)
	in.Release.Variables = slices.Clone(in.Release.Variables)
	for i, v := range in.Release.Variables {
		in.Release.Variables[i].Schema, _ = copyJSON(v.Schema).(map[string]any)
	}
	return in
}

// copyTopology returns a deep copy of an answer: a provider may give the same maps to all callers, and callers
// add to what they got. The copy has what JSON can express; numbers stay as they are written.
func copyTopology(t provider.Topology, err error) (out provider.Topology, _ error) {
	if err != nil {
		return out, err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return out, fmt.Errorf("what the provider answers cannot be written as JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return out, fmt.Errorf("what the provider answers cannot be read as JSON: %w", err)
	}
	return out, nil
}

// copyDescription returns a deep copy of a description. Parameters that JSON cannot express stay, and are
// reported when the description is published.
func copyDescription(d provider.Description) provider.Description {
	d.Capabilities, d.MachineTypes, d.Zones = slices.Clone(d.Capabilities), slices.Clone(d.MachineTypes), slices.Clone(
		d.Zones,
	)
	b, err := json.Marshal(d.Parameters)
	if err != nil {
		return d
	}
	var out map[string]map[string]any
	r := json.NewDecoder(bytes.NewReader(b))
	r.UseNumber()
	if r.Decode(&out) == nil {
		d.Parameters = out
	}
	return d
}

// copyJSON returns a deep copy of a value that JSON can express.
func copyJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for k := range out {
			out[k] = copyJSON(out[k])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = copyJSON(out[i])
		}
		return out
	}
	return v
}
