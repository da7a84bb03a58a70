// Command example is a provider in a process of its own: it sells three sizes of machines, in one zone, and makes
// clusters of the stacks of provider local.
package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/providermain"
	"github.com/polder-kaas/polder/provider/scsvars"
)

// acme is the provider. A real one would have a client of its cloud here.
type acme struct{}

func main() { providermain.Main(acme{}) }

// Describe says who we are and what we have.
func (acme) Describe() provider.Description {
	return provider.Description{
		Name:          "acme",
		Title:         "The cloud of Acme",
		Version:       "v1.0.0",
		StackProvider: "local", // our stacks are called local-…
		MachineTypes: []v1alpha1.MachineType{
			{Name: "small", Portable: "SCS-2V-4", CPU: 2, MemoryMiB: 4 << 10},
			{Name: "medium", Portable: "SCS-4V-8", CPU: 4, MemoryMiB: 8 << 10},
			{Name: "large", Portable: "SCS-8V-32", CPU: 8, MemoryMiB: 32 << 10},
		},
		Zones: []string{"zone-a"},
		Parameters: map[string]map[string]any{
			"costCentre": {"type": "string", "pattern": "^[0-9]{4}$", "description": "Who pays.", "example": "4711"},
		},
	}
}

// maxMachines is what a customer of ours may have in one cluster.
const maxMachines = 20

// Validate says what only we can know: standard fields and the stack's parameters are checked already.
func (p acme) Validate(_ context.Context, in provider.Input) field.ErrorList {
	errs := scsvars.Validate(p.Describe(), in)
	var n int32
	for _, w := range in.Cluster.Spec.Workers {
		if w.Replicas != nil {
			n += *w.Replicas
		}
	}
	if n > maxMachines {
		errs = append(errs, field.Invalid(field.NewPath("spec", "workers"), n,
			fmt.Sprintf("a cluster has at most %d workers; ask us for more", maxMachines)))
	}
	return errs
}

// Topology says what the class is told. The stack has a variable for the size of machines, which is called as the
// standard calls it, so our own names are translated.
func (p acme) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	d := p.Describe()
	t, err := scsvars.Topology(d, in)
	if err != nil {
		return t, err
	}
	translate := func(m provider.Machines) {
		for _, known := range d.MachineTypes {
			if m.Variables["flavor"] == known.Name {
				m.Variables["flavor"] = known.Portable
			}
		}
	}
	translate(t.ControlPlane)
	for _, m := range t.Pools {
		translate(m)
	}
	if c, ok := in.Cluster.Spec.Parameters["costCentre"]; ok {
		t.Annotations = map[string]string{"acme.example.org/cost-centre": string(c.Raw)}
	}
	return t, nil
}

// Health is an ability that a provider may have: it is asked twice a minute, and shown by polder providers.
func (acme) Health(context.Context) error { return nil }
