// Package providertest has what tests of providers, and tests with providers, need:
//
//   - Run, the suite that every provider must pass. It needs no plane, and belongs into the provider's unit tests.
//   - Faulty, a provider around another that panics, hangs, fails or lies when it is told to.
//
// A whole provider in memory, for tests of many clusters in a real plane, is in test/instant.
package providertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/polder-kaas/polder/provider"
)

// Options of the suite. The zero value tries a provider with the samples of this package.
type Options struct {
	// Releases that the provider is tried with; none: SampleReleases.
	Releases []provider.Release
	// Secrets are texts that the provider knows and must not disclose, such as its token.
	Secrets []string
	// Timeout is how long a call may take; 0: five seconds, as in a plane.
	Timeout time.Duration
}

// Run reports, rule by rule, where a provider does not keep the contract.
func Run(t *testing.T, p provider.Provider, o Options) {
	t.Helper()
	s := newSuite(p, o)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			report(t, r.check(t.Context(), s))
		})
	}
}

// reporter is what of a test is needed to report findings.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// maxReported is how many findings of a rule are reported one by one: many cases fail for the same reason.
const maxReported = 5

func report(t reporter, found []finding) {
	t.Helper()
	for i, f := range found {
		if i == maxReported {
			t.Errorf("and %d more of the same rule, at least", len(found)-maxReported)
			return
		}
		t.Errorf("%s", f)
	}
}

// finding is one thing that is wrong: a sentence, and the case it was seen in, if it was one.
type finding struct{ testCase, message string }

func (f finding) String() string {
	if f.testCase == "" {
		return f.message
	}
	return f.testCase + ": " + f.message
}

func newFinding(format string, args ...any) finding {
	return finding{message: fmt.Sprintf(format, args...)}
}

// rule is one part of the contract.
type rule struct {
	name  string
	check func(context.Context, *suite) []finding
}

// rules are in the order people should fix what is wrong: what comes first may be the reason for what follows.
var rules = []rule{
	{"calls come back", checkCallsReturn},                  // no panic, no hanging, whatever is asked for
	{"description is sound", checkDescription},             // names, machine types, zones, parameters
	{"description stays the same", checkDescriptionStable}, // whoever asks, and whatever they do with it
	{"input is not changed", checkInputUnchanged},          // others hold it too
	{"topology is pure", checkPurity},                      // another answer would replace machines
	{"contexts are heeded", checkContexts},                 // an error or the whole answer, in time
	{"validation agrees", checkValidation},                 // with what Topology can do, and names the field
	{"topology fits the release", checkTopology},           // variables, classes, pools, values
	{"machine types are answered", checkMachineTypeErrors}, // taken, or refused with what there is
	{"secrets stay secret", checkSecrets},                  // in errors, topologies and the description
}

// suite is a provider and all that it is tried with.
type suite struct {
	provider provider.Provider
	cases    []testInput
	secrets  []string
	timeout  time.Duration
}

func newSuite(p provider.Provider, o Options) *suite {
	s := &suite{provider: p, secrets: o.Secrets, timeout: o.Timeout}
	if s.timeout == 0 {
		s.timeout = 5 * time.Second
	}
	releases := o.Releases
	if len(releases) == 0 {
		releases = SampleReleases()
	}
	d, _ := s.describe() // what is wrong with it is reported by the first rule
	for _, r := range releases {
		s.cases = append(s.cases, testInputs(d, r)...)
	}
	return s
}

// maxFindings is after how many findings of a rule no more cases are tried: each may be a call that hangs.
const maxFindings = 3 * maxReported

// forEachCase runs check on all cases, and puts their names to the findings.
func (s *suite) forEachCase(check func(testInput) []finding) []finding {
	var out []finding
	for _, c := range s.cases {
		if len(out) >= maxFindings {
			break
		}
		for _, f := range check(c) {
			f.testCase = c.name
			out = append(out, f)
		}
	}
	return out
}
