package providertest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/provider"
)

// answer is what became of a call.
type answer struct {
	description provider.Description // of Describe
	topology    provider.Topology    // of Topology
	err         error                // of Topology
	wrong       field.ErrorList      // of Validate
	problem     string               // it did not come back as it should
}

// topology calls Topology.
func (s *suite) topology(ctx context.Context, in provider.Input) answer {
	return guarded(s.timeout, "Topology", func(a *answer) { a.topology, a.err = s.provider.Topology(ctx, in) })
}

// validate calls Validate.
func (s *suite) validate(ctx context.Context, in provider.Input) answer {
	return guarded(s.timeout, "Validate", func(a *answer) { a.wrong = s.provider.Validate(ctx, in) })
}

// describe calls Describe. The second answer says what is wrong, if anything is.
func (s *suite) describe() (provider.Description, string) {
	a := guarded(s.timeout, "Describe", func(a *answer) { a.description = s.provider.Describe() })
	return a.description, a.problem
}

// guarded runs a call on a goroutine of its own: one that panics or hangs must not end the test.
func guarded(timeout time.Duration, name string, f func(*answer)) answer {
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a = answer{problem: fmt.Sprintf("%s panics: %.200v", name, p)}
			}
			done <- a
		}()
		f(&a)
	}()
	end := time.NewTimer(timeout)
	defer end.Stop()
	select {
	case a := <-done:
		return a
	case <-end.C:
		return answer{problem: fmt.Sprintf("%s does not come back within %s", name, timeout)}
	}
}

// comeBack says that every call comes to an end by itself.
func comeBack(ctx context.Context, s *suite) []finding {
	var out []finding
	if _, problem := s.describe(); problem != "" {
		out = append(out, found("%s", problem))
	}
	return append(out, s.each(func(c trial) []finding {
		var out []finding
		for _, a := range []answer{s.validate(ctx, c.input()), s.topology(ctx, c.input())} {
			if a.problem != "" {
				out = append(out, found("%s", a.problem))
			}
		}
		return out
	})...)
}
