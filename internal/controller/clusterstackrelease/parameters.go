package clusterstackrelease

import (
	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/params"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/text"
)

// describeParameters returns what clusters of a release can choose. Customers may read releases, but no classes: in
// those there is more than parameters.
func describeParameters(objects []render.Object) (out []csv1.Parameter) {
	c, err := class.Find(objects)
	if err != nil {
		return nil // this cannot be: rendering has found it
	}
	short := func(s string) string { return text.Truncate(s, csv1.MaxParameterText) }
	for _, p := range params.List(c) {
		if len(out) == csv1.MaxReleaseParameters {
			break
		}
		out = append(out, csv1.Parameter{
			Name: short(p.Name), Type: short(p.Type), Required: p.Required, Default: short(p.Default),
			Allowed: short(p.Allowed), Description: short(p.Description), Replaces: replacedMachines(p.Replaces),
		})
	}
	return out
}

func replacedMachines(m class.Machines) csv1.ReplacedMachines {
	switch {
	case m.Unknown:
		return csv1.ReplacesUnknown
	case m.ControlPlane && m.Workers:
		return csv1.ReplacesAll
	case m.ControlPlane:
		return csv1.ReplacesControlPlane
	case m.Workers:
		return csv1.ReplacesWorkers
	}
	return csv1.ReplacesNone
}
