package providertest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/provider"
)

// callResult is what a call returned, or how it failed to.
type callResult struct {
	description      provider.Description // of Describe
	topology         provider.Topology    // of Topology
	err              error                // of Topology
	validationErrors field.ErrorList      // of Validate
	problem          string               // why there is no answer: it panicked, or did not come back in time
}

// topology calls Topology.
func (s *suite) topology(ctx context.Context, in provider.Input) callResult {
	return callGuarded(s.timeout, "Topology", func(a *callResult) { a.topology, a.err = s.provider.Topology(ctx, in) })
}

// validate calls Validate.
func (s *suite) validate(ctx context.Context, in provider.Input) callResult {
	return callGuarded(s.timeout, "Validate", func(a *callResult) { a.validationErrors = s.provider.Validate(ctx, in) })
}

// describe calls Describe. The second result says what is wrong, if anything is.
func (s *suite) describe() (provider.Description, string) {
	a := callGuarded(s.timeout, "Describe", func(a *callResult) { a.description = s.provider.Describe() })
	return a.description, a.problem
}

// callGuarded runs a call on a goroutine of its own: one that panics or hangs must not end the test.
func callGuarded(timeout time.Duration, name string, f func(*callResult)) callResult {
	// Buffered, so that a call that comes back too late does not leave its goroutine behind.
	done := make(chan callResult, 1)
	go func() {
		var a callResult
		defer func() {
			if p := recover(); p != nil {
				a = callResult{problem: fmt.Sprintf("%s panics: %.200v", name, p)}
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
		return callResult{problem: fmt.Sprintf("%s does not come back within %s", name, timeout)}
	}
}

// checkCallsReturn requires that every call comes back by itself, without a panic.
func checkCallsReturn(ctx context.Context, s *suite) []finding {
	var out []finding
	if _, problem := s.describe(); problem != "" {
		out = append(out, newFinding("%s", problem))
	}
	return append(out, s.forEachCase(func(c testInput) []finding {
		var out []finding
		for _, a := range []callResult{s.validate(ctx, c.input()), s.topology(ctx, c.input())} {
			if a.problem != "" {
				out = append(out, newFinding("%s", a.problem))
			}
		}
		return out
	})...)
}
