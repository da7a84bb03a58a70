package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// entry returns an inventory entry of a name like Kind namespace/name, or Kind name.
func entry(name string, status csv1.ResourceStatus, problem string) csv1.Resource {
	kind, rest, _ := strings.Cut(name, " ")
	r := csv1.Resource{Version: "v1", Kind: kind, Name: rest, Status: status, Error: problem}
	if ns, n, ok := strings.Cut(rest, "/"); ok {
		r.Namespace, r.Name = ns, n
	}
	return r
}

const (
	synced    = csv1.ResourceSynced
	notSynced = csv1.ResourceNotSynced
)

func TestIntend(t *testing.T) {
	set := prepare(t, applier(), named("v1", "ConfigMap", "new"), named("v1", "ConfigMap", "old"), named("v1", "Secret", "old"), named("v1", "Namespace", "n"))
	for _, tc := range []struct {
		name  string
		have  []csv1.Resource
		want  []csv1.Resource
		stale []string
	}{
		{
			name: "the first time",
			want: []csv1.Resource{
				entry("ConfigMap home/new", notSynced, ""), entry("ConfigMap home/old", notSynced, ""), entry("Namespace n", notSynced, ""),
				entry("Secret home/old", notSynced, ""),
			},
		},
		{
			name: "some are there, one of the same name but another kind; some are stale",
			have: []csv1.Resource{
				entry("ServiceAccount home/old", synced, ""), entry("Namespace n", synced, ""), entry("ConfigMap home/old", notSynced, "why"),
				entry("ConfigMap away/old", synced, ""),
			},
			want: []csv1.Resource{
				entry("ConfigMap away/old", synced, ""), entry("ConfigMap home/new", notSynced, ""), entry("ConfigMap home/old", notSynced, "why"),
				entry("Namespace n", synced, ""), entry("Secret home/old", notSynced, ""), entry("ServiceAccount home/old", synced, ""),
			},
			stale: []string{"ServiceAccount home/old", "ConfigMap away/old"},
		},
		{
			name: "an inventory of the operator that came before, with namespaces as charts have them",
			have: []csv1.Resource{
				entry("ConfigMap old", synced, ""), entry("ConfigMap home/old", notSynced, ""), entry("Namespace home/n", synced, ""), entry("ConfigMap gone", synced, ""),
			},
			want: []csv1.Resource{
				entry("ConfigMap gone", synced, ""), entry("ConfigMap home/new", notSynced, ""), entry("ConfigMap home/old", synced, ""),
				entry("Namespace n", synced, ""), entry("Secret home/old", notSynced, ""),
			},
			stale: []string{"ConfigMap gone"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.have)
			got, stale := PlanInventory(tc.have, set)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.stale, names(stale)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.have); diff != "" {
				t.Errorf("the inventory was changed: %s", diff)
			}
			again, _ := PlanInventory(got, set)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the second time it is different: %s", diff)
			}
		})
	}
}

func TestIntendTakesTheNewVersion(t *testing.T) {
	old := entry("ConfigMap home/x", synced, "")
	old.Version = "v0"
	got, stale := PlanInventory([]csv1.Resource{old}, prepare(t, applier(), named("v1", "ConfigMap", "x")))
	if diff := cmp.Diff([]csv1.Resource{entry("ConfigMap home/x", synced, "")}, got); diff != "" || stale != nil {
		t.Error(diff, stale)
	}
}

func TestTrustSynced(t *testing.T) {
	trusted := TrustSynced([]csv1.Resource{entry("ConfigMap home/x", synced, ""), entry("Secret home/y", notSynced, "")})
	for name, want := range map[string]bool{"ConfigMap home/x": true, "Secret home/x": false, "ConfigMap away/x": false, "Secret home/y": false} {
		if trusted(InventoryRef(entry(name, "", ""))) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}

func TestRecord(t *testing.T) {
	inventory := []csv1.Resource{
		entry("Secret home/failed", synced, ""), entry("ConfigMap home/untouched", synced, ""), entry("ConfigMap home/left", synced, ""),
		entry("ConfigMap home/gone", synced, ""), entry("ConfigMap home/failed", notSynced, "old"), entry("ConfigMap home/unpruned", notSynced, "old"),
	}
	before := slices.Clone(inventory)
	result := func(name string, err error) Result { return Result{Ref: InventoryRef(entry(name, "", "")), Err: err} }
	got := RecordResults(inventory,
		[]Result{result("ConfigMap home/failed", nil), result("Secret home/failed", errors.New("line one\n\tline two"))},
		[]Result{result("ConfigMap home/gone", nil), result("ConfigMap home/left", pendingError("wait"))})
	want := []csv1.Resource{
		entry("ConfigMap home/failed", synced, ""), entry("ConfigMap home/left", notSynced, "wait"), entry("ConfigMap home/unpruned", notSynced, "old"),
		entry("ConfigMap home/untouched", synced, ""), entry("Secret home/failed", notSynced, "line one line two"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, inventory); diff != "" {
		t.Errorf("the inventory was changed: %s", diff)
	}
	if diff := cmp.Diff(got, RecordResults(got, nil, nil)); diff != "" {
		t.Errorf("without results it is different: %s", diff)
	}
}

func TestRecordKeepsWhatIsAppliedAgain(t *testing.T) {
	x := Result{Ref: Ref{Version: "v1", Kind: "ConfigMap", Name: "x"}}
	if got := RecordResults([]csv1.Resource{entry("ConfigMap x", synced, "")}, []Result{x}, []Result{x}); len(got) != 1 {
		t.Errorf("it is %v", got)
	}
}

func TestErrorsFitIntoTheInventory(t *testing.T) {
	for in, want := range map[string]string{
		"short":                         "short",
		"bad \xff bytes":                "bad ? bytes",
		strings.Repeat("é", maxError/2): strings.Repeat("é", maxError/2),
		strings.Repeat("é", maxError):   strings.Repeat("é", maxError/2-2) + "…",
		strings.Repeat("a\n", maxError) + "the end of it": strings.Repeat("a ", maxError/2)[:maxError-3] + "…",
	} {
		if got := truncateError(in); got != want || len(got) > maxError {
			t.Errorf("%q", got)
		}
	}
}

func TestStaleRefs(t *testing.T) {
	wanted := []Ref{{Kind: "ConfigMap", Namespace: "home", Name: "x"}, {Kind: "Namespace", Name: "n"}}
	got := StaleRefs([]csv1.Resource{
		entry("ConfigMap home/x", synced, ""), entry("ConfigMap x", synced, ""), entry("Namespace home/n", synced, ""), // wanted
		entry("Secret home/x", synced, ""), entry("ConfigMap away/x", synced, ""), entry("ConfigMap home/y", notSynced, ""),
	}, wanted)
	if diff := cmp.Diff([]string{"Secret home/x", "ConfigMap away/x", "ConfigMap home/y"}, names(got)); diff != "" {
		t.Error(diff)
	}
}

func TestHasAny(t *testing.T) {
	inventory := []csv1.Resource{entry("ConfigMap a/x", synced, ""), entry("Namespace n", notSynced, "")}
	for name, c := range map[string]struct {
		refs []Ref
		want bool
	}{
		"nothing is asked for": {nil, false},
		"one of two":           {[]Ref{{Version: "v1", Kind: "Secret", Namespace: "a", Name: "x"}, {Version: "v1", Kind: "Namespace", Name: "n"}}, true},
		"another kind":         {[]Ref{{Version: "v1", Kind: "Secret", Namespace: "a", Name: "x"}}, false},
		"another namespace":    {[]Ref{{Version: "v1", Kind: "ConfigMap", Namespace: "b", Name: "x"}}, false},
		"another version":      {[]Ref{{Version: "v2", Kind: "ConfigMap", Namespace: "a", Name: "x"}}, true},
	} {
		if got := HasAny(inventory, c.refs); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
