package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// secretive says that no secret is in anything the provider says. What is found quotes none of it.
func secretive(ctx context.Context, s *suite) []finding {
	if len(s.secrets) == 0 {
		return nil
	}
	var out []finding
	if d, _ := s.describe(); s.tells(d) {
		out = append(out, found("the description has a secret in it"))
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	return append(out, s.each(func(c trial) []finding {
		var out []finding
		for _, in := range []context.Context{ctx, cancelled} { // errors of both sorts
			t, v := s.topology(in, c.input()), s.validate(in, c.input())
			if t.err != nil && s.tells(t.err.Error()) || s.tells(t.problem) {
				out = append(out, found("an error of Topology has a secret in it"))
			}
			if s.tells(t.topology) {
				out = append(out, found("the topology has a secret in it"))
			}
			if len(v.wrong) > 0 && s.tells(v.wrong.ToAggregate().Error()) || s.tells(v.problem) {
				out = append(out, found("an error of Validate has a secret in it"))
			}
		}
		return out
	})...)
}

// tells says that a secret is in a value, anywhere.
func (s *suite) tells(v any) bool {
	text := fmt.Sprintf("%+v", v)
	return slices.ContainsFunc(s.secrets, func(secret string) bool { return secret != "" && strings.Contains(text, secret) })
}
