package conformance

import (
	"context"
	"fmt"
	"slices"
)

// check is one promise of the API, and how a server is asked whether it keeps it.
type check struct {
	name  string // topic and promise
	shows string
	needs []Role // beside the editor
	ready bool   // a cluster must become ready
	run   func(context.Context, *session) error
}

// checks are all there are, in their order. What all answers have in common is judged last.
func checks() []check {
	return slices.Concat(documentChecks(), identityChecks(), offerChecks(), clusterChecks(), statusChecks(),
		dryRunChecks(), preconditionChecks(), idempotencyChecks(), patchChecks(), pageChecks(), problemChecks(),
		bodyChecks(), watchChecks(), tenantChecks(), isolationChecks(), kubeconfigChecks(), answerChecks())
}

// runCheck runs one check, and begins to delete what it has made.
func (s *session) runCheck(ctx context.Context, c check) Result {
	r := Result{Name: c.name, Shows: c.shows, Outcome: NotRun}
	if ctx.Err() != nil {
		r.Message = "the run was interrupted"
		return r
	}
	for _, role := range c.needs {
		if s.cfg.Tokens[role] == "" {
			r.Message = fmt.Sprintf("it needs a token of %s", describeRole(role))
			return r
		}
	}
	if c.ready && s.cfg.WaitReady == 0 {
		r.Message = "it needs a cluster that becomes ready, for which no time was given"
		return r
	}
	err := c.run(ctx, s)
	s.deleteMade(ctx)
	switch {
	case ctx.Err() != nil:
		r.Message = "the run was interrupted"
	case err != nil:
		r.Outcome, r.Message = Failed, oneLine(err.Error())
	default:
		r.Outcome = Passed
	}
	return r
}

func describeRole(r Role) string {
	switch r {
	case Admin:
		return "an admin of the tenant"
	case Viewer:
		return "a viewer of the tenant"
	case Editor:
		return "an editor of the tenant"
	case Other:
		return "a member of another tenant"
	}
	return string(r)
}
