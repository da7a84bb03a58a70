package local

import (
	"context"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/room"
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
	DataDir     string                     // where there must be room for clusters; empty: nobody looks
}

var _ provider.Provider = Provider{}

// Describe says what the provider offers.
func (p Provider) Describe() provider.Description {
	d := provider.Description{
		Name: Name, Title: "Processes on this machine, with simulated nodes", Version: p.Version,
		Capabilities: []string{"ha-control-plane", "offline", "zones"},
		AnyShape:     true,
		Zones:        []string{"zone-a", "zone-b", "zone-c"}, // as the shipped stack has them
		Immovable:    "its machines are processes on the computer of the plane; polder backup --local-clusters takes them along",
	}
	if p.Confinement != nil {
		d.Isolation = "processes of one user, confined by " + p.Confinement().String()
	}
	return d
}

// Validate says what cannot be made: besides what scsvars refuses, versions that cannot be emulated, networks without
// IPv4, and clusters that there is no room for.
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
	errs = append(errs, checkIPv4(field.NewPath("spec", "network"), in.Cluster.Spec.Network)...)
	if err := p.checkRoom(in.Cluster); err != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "provider"), err.Error()))
	}
	return errs
}

// checkIPv4 refuses networks of IPv6 alone: machines have loopback addresses of IPv4, and an API server with such an
// address takes no range of services without it.
func checkIPv4(at *field.Path, n v1alpha1.Network) (errs field.ErrorList) {
	is4 := func(text string) bool { p, err := netip.ParsePrefix(text); return err != nil || p.Addr().Is4() }
	check := func(name string, ranges []string) {
		if len(ranges) > 0 && !slices.ContainsFunc(ranges, is4) {
			errs = append(errs, field.Invalid(at.Child(name), ranges,
				"machines of this provider have addresses of IPv4; write a range of IPv4, alone or beside the one of IPv6"))
		}
	}
	check("podCIDRs", n.PodCIDRs)
	check("serviceCIDRs", n.ServiceCIDRs)
	return errs
}

// checkRoom looks whether the computer has room for a cluster that is not made yet.
func (p Provider) checkRoom(o *v1alpha1.WorkloadCluster) error {
	if p.DataDir == "" || o.Status.ClusterUID != "" {
		return nil
	}
	r, err := room.Measure(p.DataDir)
	if err != nil {
		return nil //nolint:nilerr // it cannot be known, which is no reason to refuse a cluster
	}
	return r.Check(int(ptr.Deref(o.Spec.ControlPlane.Replicas, 1)))
}

// Topology sets the variables for the size of machines, and for who may log in.
func (p Provider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	return scsvars.Topology(p.Describe(), in)
}
