package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// checkSecrets requires that no secret is in anything the provider returns. Findings quote none of it.
func checkSecrets(ctx context.Context, s *suite) []finding {
	if len(s.secrets) == 0 {
		return nil
	}
	var out []finding
	if d, _ := s.describe(); s.containsSecret(d) {
		out = append(out, newFinding("the description has a secret in it"))
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	return append(out, s.forEachCase(func(c testInput) []finding {
		var out []finding
		for _, in := range []context.Context{ctx, cancelled} { // errors of both sorts
			t, v := s.topology(in, c.input()), s.validate(in, c.input())
			if t.err != nil && s.containsSecret(t.err.Error()) || s.containsSecret(t.problem) {
				out = append(out, newFinding("an error of Topology has a secret in it"))
			}
			if s.containsSecret(t.topology) {
				out = append(out, newFinding("the topology has a secret in it"))
			}
			if len(v.validationErrors) > 0 && s.containsSecret(v.validationErrors.ToAggregate().Error()) ||
				s.containsSecret(v.problem) {
				out = append(out, newFinding("an error of Validate has a secret in it"))
			}
		}
		return out
	})...)
}

// containsSecret says that a secret is in a value, anywhere.
func (s *suite) containsSecret(v any) bool {
	text := fmt.Sprintf("%+v", v)
	return slices.ContainsFunc(s.secrets,
		func(secret string) bool { return secret != "" && strings.Contains(text, secret) })
}
