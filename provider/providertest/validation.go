package providertest

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/provider"
)

// checkValidation requires that Validate accepts only what Topology can do, and that its errors name the field and say
// what is wrong.
func checkValidation(ctx context.Context, s *suite) []finding {
	return s.forEachCase(func(c testInput) []finding {
		v, t := s.validate(ctx, c.input()), s.topology(ctx, c.input())
		if v.problem != "" || t.problem != "" {
			return nil // said by checkCallsReturn
		}
		var out []finding
		if t.err != nil && len(v.validationErrors) == 0 {
			out = append(out, newFinding("Validate accepts it, and Topology cannot do it: %v", t.err))
		}
		for _, e := range v.validationErrors {
			if !strings.HasPrefix(e.Field, "spec.") {
				out = append(out, newFinding("Validate must name a field below spec, not %q: %v", e.Field, e))
			}
			if e.Detail == "" && e.Type != field.ErrorTypeDuplicate {
				out = append(out, newFinding("Validate does not say what is wrong with %s", e.Field))
			}
		}
		return out
	})
}

// checkMachineTypeErrors requires that a machine type is accepted, or refused with a sentence that helps: it names what
// there is, or the release that has no variable for it.
func checkMachineTypeErrors(ctx context.Context, s *suite) []finding {
	d, problem := s.describe()
	if problem != "" {
		return nil // said by checkCallsReturn
	}
	return s.forEachCase(func(c testInput) []finding {
		a := s.validate(ctx, c.input())
		if !c.selectsMachines || a.problem != "" || len(a.validationErrors) == 0 {
			return nil
		}
		for _, e := range a.validationErrors {
			if isHelpful(d, c.release, e.Error()) {
				return nil
			}
		}
		return []finding{
			newFinding("it is refused without a word of what machines there are: %v", a.validationErrors.ToAggregate()),
		}
	})
}

func isHelpful(d provider.Description, r provider.Release, text string) bool {
	if strings.Contains(text, r.Name) {
		return true
	}
	for _, t := range d.MachineTypes {
		if strings.Contains(text, t.Name) || t.Portable != "" && strings.Contains(text, t.Portable) {
			return true
		}
	}
	// A provider that makes every shape has no names to choose from, and shows how one is written.
	return len(d.MachineTypes) == 0 && strings.Contains(text, "SCS-")
}
