package local

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
)

// Name of the provider.
const Name = "local"

// Provider is what the local provider offers to customers: clusters whose control planes are processes on one machine,
// with simulated nodes of any size.
type Provider struct {
	Version     string                     // of the program
	Kubernetes  string                     // the built-in version
	Confinement func() hostapi.Confinement // what confines clusters; nil: nothing is said of it
}

var _ provider.Provider = Provider{}

// Describe says what the provider offers.
func (p Provider) Describe() provider.Description {
	d := provider.Description{
		Name: Name, Title: "Processes on this machine, with simulated nodes", Version: p.Version,
		Capabilities: []string{"ha-control-plane", "offline", "zones"},
		AnyShape:     true,
		Zones:        []string{"zone-a", "zone-b", "zone-c"}, // as the shipped stack has them
	}
	if p.Confinement != nil {
		d.Isolation = "processes of one user, confined by " + p.Confinement().String()
	}
	return d
}

// Validate says what cannot be made: besides what scsvars refuses, versions that cannot be emulated.
func (p Provider) Validate(_ context.Context, in provider.Input) field.ErrorList {
	errs := scsvars.Validate(p.Describe(), in)
	versions, err := kubeversion.NewRange(p.Kubernetes)
	if err == nil {
		_, err = versions.EmulatedVersion(in.Release.Kubernetes)
	}
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec", "stack", "kubernetesVersion"),
			in.Cluster.Spec.Stack.KubernetesVersion, err.Error()))
	}
	return errs
}

// Topology sets the variables for the size of machines, and for who may log in.
func (p Provider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	return scsvars.Topology(p.Describe(), in)
}
