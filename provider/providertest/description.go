package providertest

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/machinetype"
	"github.com/polder-kaas/polder/stack/schema"
	"github.com/polder-kaas/polder/stack/version"
)

// checkDescription finds what is wrong with a description.
func checkDescription(ctx context.Context, s *suite) []finding {
	d, problem := s.describe()
	if problem != "" {
		return []finding{newFinding("%s", problem)}
	}
	var out []finding
	for _, why := range validation.IsDNS1123Label(d.Name) {
		out = append(out, newFinding("the name %q of the provider cannot be that of an object: %s", d.Name, why))
	}
	if err := (version.ReleaseLine{Provider: d.StackProviderName(), Name: "x"}).Check(); err != nil {
		out = append(out, newFinding("no release can be for this provider: %v", err))
	}
	seen := map[string]bool{}
	for _, z := range d.Zones {
		for _, why := range validation.IsDNS1123Label(z) {
			out = append(out, newFinding("the name of zone %q becomes part of others, and cannot: %s", z, why))
		}
		if seen[z] {
			out = append(out, newFinding("there are two zones %q", z))
		}
		seen[z] = true
	}
	return append(append(out, checkMachineTypes(d)...), checkParameters(ctx, d)...)
}

func checkMachineTypes(d provider.Description) []finding {
	var out []finding
	seen := map[string]bool{}
	for _, t := range d.MachineTypes {
		if t.Name == "" {
			out = append(out, newFinding("a machine type has no name"))
		}
		if seen[t.Name] {
			out = append(out, newFinding("there are two machine types %q", t.Name))
		}
		seen[t.Name] = true
		if t.CPU < 1 || t.MemoryMiB < 1 {
			out = append(out, newFinding("machine type %q has %d CPUs and %d MiB of memory", t.Name, t.CPU, t.MemoryMiB))
		}
		if t.Portable != "" {
			out = append(out, checkPortableName(t)...)
		}
	}
	return out
}

// checkPortableName finds where the portable name of a machine type and its size differ.
func checkPortableName(t v1alpha1.MachineType) []finding {
	p, err := machinetype.Parse(t.Portable)
	switch {
	case err != nil:
		return []finding{newFinding("the portable name of machine type %q: %v", t.Name, err)}
	case p.CPUs != int(t.CPU) || p.MemoryMiB != int(t.MemoryMiB):
		return []finding{
			newFinding("machine type %q has %d CPUs and %d MiB of memory, and by its portable name %s %d and %d", t.Name, t.CPU,
				t.MemoryMiB, t.Portable, p.CPUs, p.MemoryMiB),
		}
	}
	return nil
}

func checkParameters(ctx context.Context, d provider.Description) []finding {
	var out []finding
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		if name == "" {
			out = append(out, newFinding("a parameter has no name"))
		}
		wrong, _ := schema.Check(ctx, d.Parameters[name])
		for _, why := range wrong {
			out = append(out, newFinding("the schema of parameter %q: %s", name, why))
		}
	}
	if _, err := json.Marshal(d.Parameters); err != nil {
		out = append(out, newFinding("the schemas of parameters cannot be written as JSON: %v", err))
	}
	return out
}

// repetitions is how often, and by how many at once, a provider is asked the same.
const repetitions = 5

// checkDescriptionStable requires that the description is the same for everybody, and that changing an answer does not
// change the next.
func checkDescriptionStable(_ context.Context, s *suite) []finding {
	first, problem := s.describe()
	if problem != "" {
		return nil // said by checkCallsReturn
	}
	before, err := json.Marshal(first)
	if err != nil {
		return nil // reported by checkDescription
	}
	all := make([]provider.Description, repetitions)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i], _ = s.describe() })
	}
	wg.Wait()
	for _, d := range all {
		if !reflect.DeepEqual(d, first) {
			return []finding{newFinding("Describe gives another answer when it is asked again")}
		}
	}
	mutateDescription(first)
	if last, _ := s.describe(); !equalsJSON(last, before) {
		return []finding{newFinding("Describe hands out its own slices or maps: whoever changes an answer changes the next")}
	}
	return nil
}

// mutateDescription changes everything in a description that others could share.
func mutateDescription(d provider.Description) {
	for _, list := range [][]string{d.Capabilities, d.Zones} {
		for i := range list {
			list[i] += "-spoiled"
		}
	}
	for i := range d.MachineTypes {
		d.MachineTypes[i].Name += "-spoiled"
	}
	for _, schema := range d.Parameters {
		schema["description"] = "spoiled"
	}
}

// equalsJSON says that a value is these bytes as JSON.
func equalsJSON(v any, as []byte) bool {
	b, err := json.Marshal(v)
	return err == nil && string(b) == string(as)
}
