package providertest

import (
	"context"
	"reflect"
	"time"

	"github.com/polder-kaas/polder/provider"
)

// contextGracePeriod is how long a call may go on after its context has ended.
const contextGracePeriod = time.Second

// checkContexts requires that calls whose context has ended, or ends, come back soon: with an error and nothing else,
// or, since what takes no time need not be given up, with the whole answer.
func checkContexts(ctx context.Context, s *suite) []finding {
	hurried := *s
	hurried.timeout = min(s.timeout, contextGracePeriod)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	expired, stop := context.WithDeadline(ctx, time.Unix(0, 0))
	defer stop()
	return s.forEachCase(func(c testInput) []finding {
		usual := s.topology(ctx, c.input())
		if usual.problem != "" {
			return nil // said by checkCallsReturn
		}
		ending, end := context.WithTimeout(ctx, time.Millisecond)
		defer end()
		var out []finding
		for _, x := range []struct {
			name string
			ctx  context.Context
		}{{"has been cancelled", cancelled}, {"has expired", expired}, {"ends meanwhile", ending}} {
			a := hurried.topology(x.ctx, c.input())
			if what := describePartial(a, usual); what != "" {
				out = append(out, newFinding("%s if its context %s", what, x.name))
			}
			if v := hurried.validate(x.ctx, c.input()); v.problem != "" {
				out = append(out, newFinding("%s if its context %s", v.problem, x.name))
			}
		}
		return out
	})
}

// describePartial says what is wrong with an answer that is neither an error nor the usual one; "" if it is one of
// them.
func describePartial(a, usual callResult) string {
	switch {
	case a.problem != "":
		return a.problem
	case a.err != nil && !reflect.DeepEqual(a.topology, provider.Topology{}) && !sameAnswer(a, usual):
		return "Topology returns an error and a part of an answer"
	case a.err == nil && !sameAnswer(a, usual):
		return "Topology returns another answer than usual and no error"
	}
	return ""
}
