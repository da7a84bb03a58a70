package providertest

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/provider"
)

// checkInputUnchanged requires that a provider leaves its input as it is.
func checkInputUnchanged(ctx context.Context, s *suite) []finding {
	return s.forEachCase(func(c testInput) []finding {
		var out []finding
		for _, call := range []struct {
			name string
			f    func(context.Context, provider.Input) callResult
		}{{"Validate", s.validate}, {"Topology", s.topology}} {
			in := c.input()
			if call.f(ctx, in).problem != "" {
				continue // reported by checkCallsReturn; and the call may still be changing its input
			}
			if diff := cmp.Diff(c.input(), in); diff != "" {
				out = append(out, newFinding("%s changes what it was given (-before +after):\n%s", call.name, diff))
			}
		}
		return out
	})
}

// checkPurity requires that Topology depends on its input alone.
func checkPurity(ctx context.Context, s *suite) []finding {
	firsts := make([]callResult, len(s.cases))
	var out []finding
	for i, c := range s.cases { // one after the other: each has other inputs in between
		firsts[i] = s.topology(ctx, c.input())
	}
	for i, c := range s.cases {
		if firsts[i].problem != "" {
			continue
		}
		if what := s.describeImpurity(ctx, c, firsts[i]); what != "" {
			out = append(out, finding{testCase: c.name, message: what})
		}
	}
	return out
}

// describeImpurity says when Topology gives another answer to the same input; "" if it never does.
func (s *suite) describeImpurity(ctx context.Context, c testInput, first callResult) string {
	for range repetitions {
		if !sameAnswer(first, s.topology(ctx, c.input())) {
			return "Topology gives another answer to the same input"
		}
	}
	if !sameAnswer(first, s.topology(ctx, c.shuffled())) {
		return "the answer of Topology depends on the order in which maps were filled"
	}
	all := make([]callResult, repetitions)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = s.topology(ctx, c.input()) })
	}
	wg.Wait()
	for _, a := range all {
		if !sameAnswer(first, a) {
			return "Topology gives another answer when it is asked by several at once"
		}
	}
	return ""
}

// sameAnswer says that two answers of Topology are the same, as values and as bytes.
func sameAnswer(a, b callResult) bool {
	if a.problem != b.problem || (a.err == nil) != (b.err == nil) || a.err != nil && a.err.Error() != b.err.Error() {
		return false
	}
	if !reflect.DeepEqual(a.topology, b.topology) {
		return false
	}
	x, err := json.Marshal(a.topology)
	if err != nil {
		return true // reported by checkTopology
	}
	return equalsJSON(b.topology, x)
}
