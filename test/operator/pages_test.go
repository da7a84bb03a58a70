package operator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/test/testenv"
)

// through makes a ground whose applier goes through a balancer; what the test itself does, goes straight.
func through(t *testing.T) (*ground, *apply.Applier, *balancer) {
	t.Helper()
	g := newGround(t)
	b := newBalancer(t, shared.Get(t).RESTConfig(t))
	a := *g.Applier
	a.Client = newLive(t, b.config())
	return g, &a, b
}

// theirWidget makes the kind, and a Widget of somebody else.
func (g *ground) theirWidget() *unstructured.Unstructured {
	g.t.Helper()
	g.mustApply(widgets)
	u := inNamespace(g.parse(widget)[0], g.Namespace)
	u.Object["spec"] = map[string]any{"colour": "red"}
	if err := g.Client.Apply(g.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("somebody")); err != nil { // a create would wait
		g.t.Fatal(err)
	}
	return u
}

// isTheirs fails if anything of ours is on an object of somebody else.
func (g *ground) isTheirs(u *unstructured.Unstructured) {
	g.t.Helper()
	live := u.DeepCopy()
	if err := g.Client.Get(g.t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
		g.t.Fatalf("what was theirs: %v", err)
	}
	if live.GetUID() != u.GetUID() {
		g.t.Errorf("%s is another object now", u.GetName())
	}
	if l := live.GetLabels()[csv1.OwnedLabel]; l != "" {
		g.t.Errorf("%s has our label %q", u.GetName(), l)
	}
	for _, f := range live.GetManagedFields() {
		if f.Manager == string(g.Owner) {
			g.t.Errorf("%s has fields of ours: %s", u.GetName(), f.FieldsV1)
		}
	}
}

// A page in place of the answer to our read does not make an object ours that is somebody else's: neither if its kind
// is one of long ago, nor if the same set brings its definition.
func TestApplyTakesNoPageForAMissingObject(t *testing.T) {
	for name, page := range pages {
		for _, set := range []string{widget, widget + "\n---\n" + widgets} {
			t.Run(fmt.Sprintf("%s, definition %t", name, set != widget), func(t *testing.T) {
				g, a, b := through(t)
				theirs := g.theirWidget()
				prepared, err := a.Prepare(t.Context(), g.parse(set))
				if err != nil {
					t.Fatal(err)
				}
				b.answer(once("GET", "/widgets/x", 1, page))
				results := a.Apply(t.Context(), prepared, nil)
				b.answer(nil)
				if err := apply.JoinErrors(results); err == nil {
					t.Errorf("it was applied: %v", g.told(results))
				}
				if b.answered != 1 {
					t.Errorf("there were %d pages", b.answered)
				}
				g.isTheirs(theirs)
				if err := apply.JoinErrors(a.Prune(t.Context(), []apply.Ref{apply.RefOf(theirs)})); err != nil {
					t.Error(err)
				}
				g.isTheirs(theirs)
			})
		}
	}
}

// An apply of a set with a definition waits until its kind is served, and then says whose the object is.
func TestApplyLooksAgainOnceAKindIsServed(t *testing.T) {
	g, a, b := through(t)
	theirs := g.theirWidget()
	set, err := a.Prepare(t.Context(), g.parse(widget+"\n---\n"+widgets))
	if err != nil {
		t.Fatal(err)
	}
	b.answer(once("GET", "/widgets/x", 1, http.NotFound))
	got := g.told(a.Apply(t.Context(), set, nil))
	if !strings.Contains(got["Widget x"], "belongs to somebody else") {
		t.Errorf("it says %q", got["Widget x"])
	}
	g.isTheirs(theirs)
}

// A page in place of any answer during Prune does not make an object gone that is there.
func TestPruneTakesNoPageForAnObjectThatIsGone(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		t.Run(name, func(t *testing.T) {
			g, a, b := through(t)
			refs := g.prepare(widget + "\n---\n" + widgets).Refs()
			object := refs[slices.IndexFunc(refs, func(r apply.Ref) bool { return r.Kind == "Widget" })]
			g.mustApply(widget + "\n---\n" + widgets)
			u := g.parse(widget)[0]
			u.SetNamespace(g.Namespace)
			for n := 1; ; n++ {
				b.answered = 0
				g.mustApply(widget)
				a.Client = newLive(t, b.config()) // which knows nothing yet
				left := n
				b.answer(func(*http.Request) http.HandlerFunc {
					if left--; left == 0 {
						return pages[name]
					}
					return nil
				})
				results := a.Prune(t.Context(), []apply.Ref{object})
				b.answer(nil)
				if results[0].Err == nil && g.exists(u) {
					t.Errorf("after a page for request %d it is said to be gone, and is there", n)
				}
				if b.answered == 0 {
					if n < 4 || results[0].Err != nil {
						t.Errorf("after %d requests: %v", n, results[0].Err)
					}
					return
				}
			}
		})
	}
}

// A kind that API servers do not list is no proof that its objects are gone, as long as there is its definition.
func TestPruneBelievesDefinitionsMoreThanDiscovery(t *testing.T) {
	g, a, b := through(t)
	g.mustApply(widget + "\n---\n" + widgets)
	ref := apply.Ref{Group: g.group(), Version: "v1", Kind: "Widget", Namespace: g.Namespace, Name: "x"}
	b.answer(func(r *http.Request) http.HandlerFunc { // as of an API server that has not read its definitions yet
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/"+g.group()):
			return http.NotFound
		case r.URL.Path == "/apis":
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
			}
		}
		return nil
	})
	if err := apply.JoinErrors(a.Prune(t.Context(), []apply.Ref{ref})); err == nil ||
		!strings.Contains(err.Error(), "there is CustomResourceDefinition widgets."+g.group()) {
		t.Errorf("it says %v", err)
	}
	b.answer(nil)
	if err := apply.JoinErrors(a.Prune(t.Context(), []apply.Ref{ref})); err != nil {
		t.Error(err)
	}
	if u := g.parse(widget)[0]; g.exists(inNamespace(u, g.Namespace)) {
		t.Error("it is there")
	}
}

func inNamespace(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	u.SetNamespace(namespace)
	return u
}

// A kind that lost the version under which we knew it, or is gone, is looked for again.
func TestPruneOfAKindThatHasChanged(t *testing.T) {
	g, a, _ := through(t)
	g.mustApply(strings.ReplaceAll(widgets, "  versions:\n", "  versions:\n"+secondVersion))
	g.mustApply(strings.ReplaceAll(widget, "GROUP/v1", "GROUP/v2"))
	ref := apply.Ref{Group: g.group(), Version: "v2", Kind: "Widget", Namespace: g.Namespace, Name: "x"}
	if u, err := a.Get(t.Context(), ref); err != nil || u == nil {
		t.Fatalf("%v, %v", u, err) // now v2 is known to it
	}
	g.mustApply(widgets)
	g.awaitUnserved("v2")
	if err := apply.JoinErrors(a.Prune(t.Context(), []apply.Ref{ref})); err != nil {
		t.Fatal(err)
	}
	if g.exists(inNamespace(g.parse(widget)[0], g.Namespace)) {
		t.Error("it was forgotten")
	}
	ref.Version = "v1"
	if u, err := a.Get(t.Context(), ref); err != nil || u != nil {
		t.Fatalf("%v, %v", u, err)
	}
	if err := g.Client.Delete(t.Context(), g.parse(widgets)[0]); err != nil {
		t.Fatal(err)
	}
	g.awaitUnserved("v1")
	if err := apply.JoinErrors(a.Prune(t.Context(), []apply.Ref{ref})); err != nil {
		t.Errorf("of a kind that is gone: %v", err)
	}
}

// Pages at random moments, while sets are applied and pruned beside objects of somebody else.
func TestApplyAndPruneThroughPages(t *testing.T) {
	g, a, b := through(t)
	theirs := g.theirWidget()
	const rounds = 60
	object := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {a: b}}
---
{apiVersion: GROUP/v1, kind: Widget, metadata: {name: w%d}, spec: {size: 1}}
---
` + widget
	applied, pruned := 0, 0
	for round := range rounds {
		text := fmt.Sprintf(object, round%3, round%3)
		set := g.prepare(text)
		b.at(uint64(round), 0.3)
		intent, _ := apply.PlanInventory(nil, set)
		results := a.Apply(t.Context(), set, nil)
		inventory := apply.RecordResults(intent, results, nil)
		for _, r := range results {
			if r.Err == nil {
				applied++
			}
		}
		results = a.Prune(t.Context(), set.Refs())
		for _, r := range results {
			if r.Err == nil {
				pruned++
			}
		}
		inventory = apply.RecordResults(inventory, nil, results)
		b.answer(nil)
		g.isTheirs(theirs)
		for _, ref := range set.Refs() {
			u, err := g.Get(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			listed := slices.ContainsFunc(inventory, func(r csv1.Resource) bool { return r.Kind == ref.Kind && r.Name == ref.Name })
			if u != nil && u.GetLabels()[csv1.OwnedLabel] != "" && !listed {
				t.Errorf("round %d: %s is ours, is there, and is forgotten", round, ref)
			}
		}
		if err := apply.JoinErrors(a.Prune(t.Context(), set.Refs())); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d objects applied, %d pruned, %d pages", applied, pruned, b.answered)
	if applied < rounds/4 || pruned < rounds/4 || b.answered < rounds {
		t.Error("too little came through, or too few pages")
	}
}

// Somebody else makes an object between our read and our apply, with fields that do not contradict ours.
func TestApplyMergesIntoNothingOfOthers(t *testing.T) { raceCreate(t, 60) }

// raceCreate lets somebody else create an object while we apply it: from the beginning, or once we have read that it is
// absent.
func raceCreate(t *testing.T, rounds int) {
	g := newGround(t)
	straight := g.Client
	won := map[bool]int{}
	for round := range rounds {
		name := fmt.Sprintf("x%d", round)
		set := g.prepare(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {ours: "1"}}`, name))
		stranger := inNamespace(g.parse(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}, data: {theirs: "1"}}`)[0], g.Namespace)
		made := make(chan error, 1)
		create := func(string) error {
			go func() { made <- straight.Create(t.Context(), stranger, client.FieldOwner("somebody")) }()
			return nil
		}
		g.Client = straight
		if round%3 == 0 {
			_ = create(name)
		} else {
			g.Client = meddling{Client: straight, beforeApply: create}
		}
		results := g.Apply(t.Context(), set, nil)
		g.Client = straight
		err := <-made
		won[err == nil]++
		switch {
		case err == nil && results[0].Err == nil:
			t.Errorf("round %d: both made it", round)
		case err != nil && results[0].Err != nil:
			t.Errorf("round %d: nobody made it: %v, %v", round, err, results[0].Err)
		case err == nil:
			g.isTheirs(stranger)
		}
	}
	t.Logf("%d were ours, %d were theirs", won[false], won[true])
	if rounds >= 50 && (won[true] == 0 || won[false] == 0) {
		t.Error("it was no race")
	}
}

// A definition gains a version while there is an object of somebody else.
func TestApplyOfADefinitionThatGainsAVersion(t *testing.T) { gainVersions(t, 10) }

// gainVersions logs how often the new version was discovered before it was served.
func gainVersions(t *testing.T, rounds int) {
	two := strings.ReplaceAll(widgets, "  versions:\n", "  versions:\n"+secondVersion)
	late := 0
	for round := range rounds {
		g := newGround(t)
		theirs := g.theirWidget()
		b := newBalancer(t, shared.Get(t).RESTConfig(t)) // it answers nothing itself, but sees all
		b.seen = func(r *http.Response) {
			if strings.HasSuffix(r.Request.URL.Path, "/v2/namespaces/"+g.Namespace+"/widgets/x") && r.StatusCode == http.StatusNotFound {
				late++
			}
		}
		a := *g.Applier
		a.Client = newLive(t, b.config())
		set, err := a.Prepare(t.Context(), g.parse(two+"\n---\n"+strings.ReplaceAll(widget, "GROUP/v1", "GROUP/v2")))
		if err != nil {
			t.Fatal(err)
		}
		got := g.told(a.Apply(t.Context(), set, nil))
		if !strings.Contains(got["Widget x"], "belongs to somebody else") {
			t.Errorf("round %d: %v", round, got)
		}
		g.isTheirs(theirs)
		b.Close()
	}
	t.Logf("in %d of %d rounds a page came in place of the object", late, rounds)
}

const secondVersion = `  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// awaitUnserved waits until a version of Widgets is neither served nor discovered.
func (g *ground) awaitUnserved(version string) {
	g.t.Helper()
	u := inNamespace(g.parse(strings.ReplaceAll(widget, "GROUP/v1", "GROUP/"+version))[0], g.Namespace)
	testenv.Eventually(g.t, soon, func() error {
		fresh := newLive(g.t, shared.Get(g.t).RESTConfig(g.t))
		if err := fresh.Get(g.t.Context(), client.ObjectKeyFromObject(u), u); !meta.IsNoMatchError(err) {
			return fmt.Errorf("%s is discovered: %w", version, err)
		}
		return nil
	})
}
