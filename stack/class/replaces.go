package class

import (
	"regexp"
	"slices"
	"strings"
)

// Machines says which machines Cluster API replaces, because what they are made of changes.
type Machines struct {
	ControlPlane, Workers bool
	Unknown               bool // something outside the class decides
}

// kubeadmConfigPath is what a control plane of kubeadm makes its machines of. Its other fields say how it replaces
// them.
const kubeadmConfigPath = "/spec/template/spec/kubeadmConfigSpec"

// Replaces says which machines are replaced when the value of a variable changes. It tells from the patches which
// templates follow the variable; a template that would come out the same is not known beforehand.
func (c *Class) Replaces(variable string) Machines {
	var out Machines
	mentions := regexp.MustCompile(`[."]` + regexp.QuoteMeta(variable) + `\b`)
	for _, p := range c.Patches {
		if p.External != nil {
			out.Unknown = true // its server sees all variables
		}
		whole := mentions.MatchString(p.EnabledIf)
		for _, d := range p.Definitions {
			for _, j := range d.JSONPatches {
				if whole || j.uses(variable, mentions) {
					out = out.with(c.replacedBy(d, j))
				}
			}
		}
	}
	return out
}

func (m Machines) with(o Machines) Machines {
	return Machines{m.ControlPlane || o.ControlPlane, m.Workers || o.Workers, m.Unknown || o.Unknown}
}

// uses says whether the value of a change comes from a variable.
func (j JSONPatch) uses(variable string, mentions *regexp.Regexp) bool {
	if j.ValueFrom == nil {
		return false
	}
	// A part of a variable is named by its path: proxy.host, mirrors[0].
	root, _, _ := strings.Cut(strings.ReplaceAll(j.ValueFrom.Variable, "[", "."), ".")
	return root == variable || mentions.MatchString(j.ValueFrom.Template)
}

// replacedBy says which machines a change of a template replaces.
func (c *Class) replacedBy(d Definition, j JSONPatch) (out Machines) {
	m := d.Selector.MatchResources
	if m == nil {
		return out
	}
	hasNames := func(n *Names) bool { return n != nil && len(n.Names) > 0 }
	out.Workers = hasNames(m.MachineDeploymentClass) || hasNames(m.MachinePoolClass)
	if !m.ControlPlane {
		return out
	}
	// The template of its machines is for the control plane too.
	isControlPlane := slices.ContainsFunc(c.Refs, func(r Ref) bool {
		return r.Field == "controlPlane" && r.Kind == d.Selector.Kind
	})
	switch {
	case !isControlPlane:
		out.ControlPlane = true
	case d.Selector.Kind == "KubeadmControlPlaneTemplate":
		out.ControlPlane = strings.HasPrefix(j.Path, kubeadmConfigPath)
	default: // what it does with its fields only its controller knows
		out.Unknown = true
	}
	return out
}
