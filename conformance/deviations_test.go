package conformance_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/conformance"
	"github.com/polder-kaas/polder/test/foreign"
)

func failed(r *conformance.Report) []string {
	names := []string{}
	for _, x := range r.Results {
		if x.Outcome == conformance.Failed {
			names = append(names, x.Name)
		}
	}
	return names
}

// Each promise that a server breaks is found by the check that is for it, which is the first one here, by those that rely
// on the same, and by no other.
func TestDeviationsAreFound(t *testing.T) {
	t.Parallel()
	deviations := map[foreign.Deviation][]string{
		foreign.ForeignForbidden:  {"isolation/same 404", "watch/refused"},
		foreign.TenantsOfOthers:   {"isolation/list"},
		foreign.NoTokenNeeded:     {"identity/token needed"},
		foreign.ViewerWrites:      {"isolation/viewer"},
		foreign.FixedETag:         {"preconditions/etag", "preconditions/not modified", "preconditions/stale"},
		foreign.IgnoredIfMatch:    {"preconditions/stale"},
		foreign.IgnoredIfNone:     {"preconditions/absent", "preconditions/not modified"},
		foreign.StaleFile:         {"preconditions/stale file"},
		foreign.IgnoredUID:        {"clusters/uid"},
		foreign.IgnoredKey:        {"idempotency/repeated", "idempotency/at once", "idempotency/other body"},
		foreign.KeyOfAnyBody:      {"idempotency/other body"},
		foreign.KeyShown:          {"idempotency/key hidden"},
		foreign.UnknownField:      {"problems/unknown field", "patch/limits"},
		foreign.NoLocation:        {"problems/field", "clusters/put makes"},
		foreign.ProblemType:       {"document/answers", "problems/path"},
		foreign.RepeatedItem:      {"pages/walked"},
		foreign.IgnoredPageSize:   {"pages/walked"},
		foreign.NoSynced:          {"watch/synced"},
		foreign.DeletionsNotTold:  {"watch/changes"},
		foreign.DryRunWrites:      {"dry run/made", "dry run/changed"},
		foreign.LabelsStay:        {"clusters/replaced"},
		foreign.NullStays:         {"patch/merge"},
		foreign.NothingDeleted:    {"clusters/deleted", "dry run/changed", "preconditions/current", "watch/changes", "document/answers"},
		foreign.NoStatus:          {"status/said", "status/ready", "kubeconfig/made", "kubeconfig/role"},
		foreign.NoActor:           {"status/ready", "kubeconfig/made", "kubeconfig/role"},
		foreign.StatusTaken:       {"status/not written", "status/said", "status/ready", "kubeconfig/made", "kubeconfig/role"},
		foreign.SecondObject:      {"bodies/one object"},
		foreign.MembersWithoutTag: {"tenants/members"},
		foreign.RobotStays:        {"tenants/robots"},
		foreign.RoleIgnored:       {"kubeconfig/role"},
		foreign.KeySent:           {"kubeconfig/made"},
		foreign.NoOperation:       {"document/complete", "document/3.0"},
		foreign.NoProperty:        {"document/complete"},
		foreign.RequiredMissing:   {"document/answers"},
		foreign.ServerError:       {"document/answers", "dry run/refused", "problems/field"},
	}
	// Most of their time goes by with waiting: more are under way than there are processors.
	const atOnce = 8
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	var mu sync.Mutex
	reports, errs := map[foreign.Deviation]*conformance.Report{}, map[foreign.Deviation]error{}
	for d := range deviations {
		c := config(t, d)
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			r, err := conformance.Run(t.Context(), c)
			mu.Lock()
			defer mu.Unlock()
			reports[d], errs[d] = r, err
		})
	}
	group.Wait()
	for d, want := range deviations {
		t.Run(string(d), func(t *testing.T) {
			if errs[d] != nil {
				t.Fatal(errs[d])
			}
			r := reports[d]
			got := failed(r)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || r.Conforms() {
				t.Errorf("checks that are to fail (-) and that did (+): %s", diff)
			}
			if (d == foreign.NothingDeleted) != (len(r.Left) > 0) {
				t.Errorf("left: %q", r.Left)
			}
		})
	}
}
