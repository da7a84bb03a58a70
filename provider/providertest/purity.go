package providertest

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/provider"
)

// unchanged says that a provider leaves its input as it is.
func unchanged(ctx context.Context, s *suite) []finding {
	return s.each(func(c trial) []finding {
		var out []finding
		for _, call := range []struct {
			name string
			f    func(context.Context, provider.Input) answer
		}{{"Validate", s.validate}, {"Topology", s.topology}} {
			in := c.input()
			if call.f(ctx, in).problem != "" {
				continue // said by comeBack; and it may still be at it
			}
			if diff := cmp.Diff(c.input(), in); diff != "" {
				out = append(out, found("%s changes what it was given (-before +after):\n%s", call.name, diff))
			}
		}
		return out
	})
}

// pure says that Topology depends on its input alone.
func pure(ctx context.Context, s *suite) []finding {
	firsts := make([]answer, len(s.cases))
	var out []finding
	for i, c := range s.cases { // one after the other: each has other inputs in between
		firsts[i] = s.topology(ctx, c.input())
	}
	for i, c := range s.cases {
		if firsts[i].problem != "" {
			continue
		}
		if what := s.differs(ctx, c, firsts[i]); what != "" {
			out = append(out, finding{in: c.name, what: what})
		}
	}
	return out
}

// differs says when Topology gives another answer to the same input; "" if it does not.
func (s *suite) differs(ctx context.Context, c trial, first answer) string {
	for range times {
		if !alike(first, s.topology(ctx, c.input())) {
			return "Topology gives another answer to the same input"
		}
	}
	if !alike(first, s.topology(ctx, c.shuffled())) {
		return "the answer of Topology depends on the order in which maps were filled"
	}
	all := make([]answer, times)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = s.topology(ctx, c.input()) })
	}
	wg.Wait()
	for _, a := range all {
		if !alike(first, a) {
			return "Topology gives another answer when it is asked by several at once"
		}
	}
	return ""
}

// alike says that two answers of Topology are the same, as values and as bytes.
func alike(a, b answer) bool {
	if a.problem != b.problem || (a.err == nil) != (b.err == nil) || a.err != nil && a.err.Error() != b.err.Error() {
		return false
	}
	if !reflect.DeepEqual(a.topology, b.topology) {
		return false
	}
	x, err := json.Marshal(a.topology)
	if err != nil {
		return true // said by fits
	}
	return same(b.topology, x)
}
