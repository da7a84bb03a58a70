// Package scsvars says to classes of cluster stacks how machines are made and who may log in, by the
// variables such stacks have for it, whatever generation they are of: one variable for all machines, which
// control plane and pools override, or one for each of them, in either spelling.
package scsvars

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/machinetype"
)

// Variables for machine types and disks, newest generation first.
var (
	controlPlaneType = []string{"flavor", "controlPlaneFlavor", "controller_flavor"}
	workerType       = []string{"flavor", "workerFlavor", "worker_flavor"}
	controlPlaneDisk = []string{"rootDisk", "controlPlaneRootDisk", "controller_root_disk"}
	workerDisk       = []string{"rootDisk", "workerRootDisk", "worker_root_disk"}
)

// Topology sets these variables for a cluster. It fails for what Validate finds.
func Topology(d provider.Description, in provider.Input) (provider.Topology, error) {
	t, errs := buildTopology(d, in)
	return t, errs.ToAggregate()
}

// Validate finds machine types the provider does not have, and what the class has no variable for.
func Validate(d provider.Description, in provider.Input) field.ErrorList {
	_, errs := buildTopology(d, in)
	return errs
}

func buildTopology(d provider.Description, in provider.Input) (provider.Topology, field.ErrorList) {
	spec := field.NewPath("spec")
	t := provider.Topology{Variables: provider.Values{}, Pools: map[string]provider.Machines{}}
	var errs field.ErrorList
	part := func(at *field.Path, m v1alpha1.MachineSelection, types, disks []string) provider.Machines {
		values, err := machineVariables(d, in.Release, at, m, types, disks)
		errs = append(errs, err...)
		return provider.Machines{Variables: values}
	}
	t.ControlPlane = part(spec.Child("controlPlane"), in.Cluster.Spec.ControlPlane.MachineSelection, controlPlaneType,
		controlPlaneDisk)
	for i, p := range in.Cluster.Spec.Workers {
		t.Pools[p.Name] = part(spec.Child("workers").Index(i), p.MachineSelection, workerType, workerDisk)
	}
	if o := in.Cluster.Spec.OIDC; o != nil {
		errs = append(errs, setOIDC(t.Variables, in.Release, o, spec.Child("oidc"))...)
	}
	return t, errs
}

// machineVariables returns the values for machines of one sort.
func machineVariables(d provider.Description, r provider.Release, at *field.Path, m v1alpha1.MachineSelection, types,
	disks []string) (provider.Values, field.ErrorList) {
	name, err := d.ChooseMachineType(m)
	switch {
	case err != nil && m.Machine != nil:
		return nil, field.ErrorList{field.Invalid(at.Child("machine"), field.OmitValueType{}, err.Error())}
	case err != nil:
		return nil, field.ErrorList{field.Invalid(at.Child("machineType"), m.MachineType, err.Error())}
	case name == "":
		return nil, nil
	}
	v, ok := firstVariable(r, types)
	if !ok {
		asked := "machineType"
		if m.Machine != nil {
			asked = "machine"
		}
		return nil, field.ErrorList{
			field.Forbidden(at.Child(asked),
				fmt.Sprintf("release %s does not let the size of these machines be chosen", r.Name)),
		}
	}
	values := provider.Values{v: name}
	wanted, own := requestedDiskGB(m), machineTypeDiskGB(d, name)
	// A type of that name has the disk already; for a shape the type is only the smallest that fits, so the disk is
	// set.
	if wanted == 0 || m.Machine == nil && own >= wanted {
		return values, nil
	}
	if disk, ok := firstVariable(r, disks); ok {
		values[disk] = wanted
		return values, nil
	}
	if own >= wanted {
		return values, nil
	}
	place := at.Child("machine", "disk")
	if m.Machine == nil {
		place = at.Child("machineType")
	}
	return nil, field.ErrorList{
		field.Forbidden(place, fmt.Sprintf("release %s does not let the disk of these machines be chosen, and machine type %s has none of its own; leave the disk out", r.Name, name)),
	}
}

// requestedDiskGB is the disk that is asked for, by a shape or a portable name, in GB; 0 is none.
func requestedDiskGB(m v1alpha1.MachineSelection) int {
	if m.Machine != nil {
		s, _ := provider.ShapeOf(*m.Machine) // ChooseMachineType has read it before
		return s.DiskGB
	}
	t, err := machinetype.Parse(m.MachineType)
	if err != nil {
		return 0 // it is the provider's own name
	}
	return t.DiskGB
}

// machineTypeDiskGB is the disk of a machine type, in GB. A provider that makes any shape makes the disk too, as the
// name says.
func machineTypeDiskGB(d provider.Description, name string) int {
	for _, t := range d.MachineTypes {
		if t.Name == name {
			return int(t.DiskGB)
		}
	}
	return math.MaxInt
}

// firstVariable is the first of these variables that the class has.
func firstVariable(r provider.Release, names []string) (string, bool) {
	for _, n := range names {
		if r.Has(n) {
			return n, true
		}
	}
	return "", false
}

// setOIDC sets the variable for an issuer, in the spelling the class has.
func setOIDC(values provider.Values, r provider.Release, o *v1alpha1.OIDC, at *field.Path) field.ErrorList {
	name, keys := "oidcConfig", []string{
		"issuerURL", "clientID", "usernameClaim", "groupsClaim", "usernamePrefix", "groupsPrefix",
	}
	if !r.Has(name) {
		name, keys = "oidc_config", []string{
			"issuer_url", "client_id", "username_claim", "groups_claim", "username_prefix", "groups_prefix",
		}
	}
	if !r.Has(name) {
		return field.ErrorList{
			field.Forbidden(at, fmt.Sprintf("release %s has no way to let users of an OpenID Connect issuer log in", r.Name)),
		}
	}
	value := map[string]any{}
	for i, v := range []string{o.IssuerURL, o.ClientID, o.UsernameClaim, o.GroupsClaim, o.UsernamePrefix, o.GroupsPrefix} {
		if v != "" {
			value[keys[i]] = v
		}
	}
	values[name] = value
	return nil
}
