package reconciletest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var (
	full = flag.Bool("reconcile.full", false, "run all cases of internal/reconcile/reconciletest, not a sample")
	seed = flag.Uint64("reconcile.seed", 0, "choose the sample of this seed; 0 takes any")
)

// check is one kind of fault. Each of its cases is one point at which it happens.
type check struct {
	name  string
	cases func(h *harness) []testCase
}

// testCase is one case of a check. Its error says what the subject does wrong; its note is logged if there is
// none.
type testCase struct {
	name string
	run  func(ctx context.Context) (note string, err error)
}

var checks = []check{
	{"crash", crashCases},
	{"missed", missedCases},
	{"stale", staleCases},
	{"storm", stormCases},
	{"quiet", quietCases},
	{"stripped", strippedCases},
	{"bad", badCases},
	{"deleted", deletedCases},
}

// Run tests the subject in all ways. The cases run in parallel, each in a namespace of its own.
func Run(t *testing.T, api API, s Subject) {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64() //nolint:gosec // it only chooses a sample
	}
	h, err := newHarness(api, s, *full, n)
	if err != nil {
		t.Fatal(err)
	}
	h.fullDurations = *full
	begin := time.Now()
	if err := h.recordBaseline(t.Context()); err != nil {
		t.Fatalf("nothing was made to go wrong, and still: %v", err)
	}
	t.Logf("settled after %s; %d reconciles and these %d writes, %d of them before it was settled: %q",
		h.baseline.settleTime.Round(time.Millisecond), h.baseline.reconciles, len(h.baseline.writes),
		h.baseline.writesUntilSettled, h.baseline.writes)
	total := 0
	t.Run("faults", func(t *testing.T) {
		for _, c := range checks {
			cases := c.cases(h)
			total += len(cases)
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				runCases(t, cases)
			})
		}
	})
	t.Logf("%d cases in %s, chosen by -reconcile.seed=%d", total, time.Since(begin).Round(time.Second), n)
}

func runCases(t *testing.T, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			note, err := c.run(t.Context())
			switch {
			case err != nil:
				t.Error(err)
			case note != "":
				t.Log(note)
			}
		})
	}
}

// Baseline names the check that a subject works when nothing goes wrong.
const Baseline = "baseline"

// Finding is something a subject does wrong.
type Finding struct {
	Check, Case string
	Err         error
}

func (f Finding) String() string { return fmt.Sprintf("%s, %s: %v", f.Check, f.Case, f.Err) }

// RunChecks runs some of the checks, all cases of each up to the first that fails, with short durations, and
// returns what failed. It is for testing the checks themselves.
func RunChecks(ctx context.Context, api API, s Subject, names ...string) ([]Finding, error) {
	h, err := newHarness(api, s, true, 1)
	if err != nil {
		return nil, err
	}
	if err := h.recordBaseline(ctx); err != nil {
		return []Finding{{Baseline, "a whole life", err}}, nil
	}
	var found []Finding
	for _, c := range checks {
		if !slices.Contains(names, c.name) {
			continue
		}
		for _, tc := range c.cases(h) {
			if _, err := tc.run(ctx); err != nil {
				found = append(found, Finding{c.name, tc.name, err})
				break
			}
		}
	}
	return found, nil
}

// sample chooses n of the cases, in their order, unless all are wanted.
func (h *harness) sample(all []testCase, n int) []testCase {
	if h.allCases || len(all) <= n {
		return all
	}
	chosen := h.random.Perm(len(all))[:n]
	slices.Sort(chosen)
	var out []testCase
	for _, i := range chosen {
		out = append(out, all[i])
	}
	return out
}
