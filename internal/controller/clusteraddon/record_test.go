package clusteraddon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// chart stands for charts that ask for keys. Like the renderer, it makes those that the record lacks.
type chart struct {
	asks    []string
	days    int // that its certificate lives; 0 means that it has none
	before  func(rendering int)
	renders int
	made    int
}

// render gives stages with one object, which has the keys in its name.
func (c *chart) render(rec render.Record) ([]stack.RenderedStage, error) {
	c.renders++
	out, keys := stack.RenderedStage{NewKeys: render.Keys{}}, []string{}
	for _, id := range c.asks {
		key, ok := rec.Keys[id]
		if !ok {
			c.made++
			key = fmt.Appendf(nil, "%s-%p-%d", id, c, c.made)
			out.NewKeys[id] = key
		}
		keys = append(keys, string(key))
	}
	if c.days != 0 {
		begin := rec.Time
		if rec.Renewed.After(begin) {
			begin = rec.Renewed
		}
		end := begin.AddDate(0, 0, c.days)
		out.Expires = &end
	}
	out.Objects = []render.Object{object(strings.Join(keys, " "))}
	if c.before != nil {
		c.before(c.renders)
	}
	return []stack.RenderedStage{out, out}, nil // of both runtime hooks
}

func renderedKeys(t *testing.T, all []stack.RenderedStage, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(all[0].NewKeys) > 0 {
		t.Error("what is applied has keys that are not stored")
	}
	return all[0].Objects[0].Name()
}

func liveReconciler(c client.Client) *Reconciler {
	r := alone()
	r.Live = c
	return r
}

// storedSecret returns the Secret of the record, and the record.
func storedSecret(t *testing.T, c client.Client) (*corev1.Secret, render.Record) {
	t.Helper()
	secret, rec := &corev1.Secret{}, render.Record{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "cluster-addon-demo"}, secret); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(secret.Data[recordKey], &rec); err != nil {
		t.Fatal(err)
	}
	return secret, rec
}

// storeRecord puts a record into the Secret in place of what is there.
func storeRecord(t *testing.T, c client.Client, rec render.Record) {
	t.Helper()
	secret, _ := storedSecret(t, c)
	b, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[recordKey] = b
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreStoredBeforeTheyAreUsed(t *testing.T) {
	c := newClient(t)
	r, s, ch := liveReconciler(c), newScope(csv1.ClusterAddonStatus{}), &chart{asks: []string{"a", "b"}}
	all, err := r.renderFromRecord(t.Context(), s, ch.render)
	keys := renderedKeys(t, all, err)
	secret, rec := storedSecret(t, c)
	if want := string(rec.Keys["a"]) + " " + string(rec.Keys["b"]); keys != want || ch.made != 2 || ch.renders != 2 {
		t.Errorf("%q, stored %q, %d made in %d renderings", keys, want, ch.made, ch.renders)
	}
	// The next run changes nothing.
	all, err = r.renderFromRecord(t.Context(), s, ch.render)
	again, _ := storedSecret(t, c)
	if renderedKeys(t, all, err) != keys || ch.renders != 3 || again.ResourceVersion != secret.ResourceVersion {
		t.Errorf("%d renderings, version %s after %s", ch.renders, again.ResourceVersion, secret.ResourceVersion)
	}
	// A release that asks for others adds them; those it does not ask for stay, for a release that does.
	ch.asks = []string{"b", "c"}
	all, err = r.renderFromRecord(t.Context(), s, ch.render)
	_, more := storedSecret(t, c)
	want := string(rec.Keys["b"]) + " " + string(more.Keys["c"])
	if renderedKeys(t, all, err) != want || string(more.Keys["a"]) != string(rec.Keys["a"]) {
		t.Errorf("%v, before %v", more.Keys, rec.Keys)
	}
}

// Keys that were made and could not be stored are not used; the next run makes others.
func TestKeysAreLostBeforeTheyAreStored(t *testing.T) {
	c := newClient(t)
	broken := interceptor.NewClient(c, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return errBroken },
	})
	s, ch := newScope(csv1.ClusterAddonStatus{}), &chart{asks: []string{"a"}}
	all, err := liveReconciler(broken).renderFromRecord(t.Context(), s, ch.render)
	if all != nil || !errors.Is(err, errBroken) {
		t.Errorf("%v, %v", all, err)
	}
	if got := conditionOf(s.addon, csv1.ConditionApplied); got.Message != "broken" {
		t.Errorf("%+v", got)
	}
	all, err = liveReconciler(c).renderFromRecord(t.Context(), s, ch.render)
	_, rec := storedSecret(t, c)
	if keys := renderedKeys(t, all, err); keys != string(rec.Keys["a"]) || ch.made != 2 {
		t.Errorf("%q, %v, %d made", keys, rec.Keys, ch.made)
	}
}

// Of two runs that make a key at the same time, one is first, and both use its key.
func TestRunsThatStoreAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(*Reconciler, *scope) error{
		"before there is a record": func(*Reconciler, *scope) error { return nil },
		"with a record": func(r *Reconciler, s *scope) error {
			_, err := r.ensureRecord(t.Context(), s)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			r, s := liveReconciler(c), newScope(csv1.ClusterAddonStatus{})
			if err := prepare(r, s); err != nil {
				t.Fatal(err)
			}
			first, second, firstKeys := &chart{asks: []string{"a", "b"}}, &chart{asks: []string{"a", "c"}}, ""
			second.before = func(rendering int) {
				if rendering == 1 {
					all, err := r.renderFromRecord(t.Context(), newScope(csv1.ClusterAddonStatus{}), first.render)
					firstKeys = renderedKeys(t, all, err)
				}
			}
			all, err := r.renderFromRecord(t.Context(), s, second.render)
			keys := renderedKeys(t, all, err)
			_, rec := storedSecret(t, c)
			if a := string(rec.Keys["a"]); firstKeys != a+" "+string(rec.Keys["b"]) || keys != a+" "+string(rec.Keys["c"]) {
				t.Errorf("first %q, second %q, stored %v", firstKeys, keys, rec.Keys)
			}
		})
	}
}

// Of two runs that create the record at the same time, both use that of the first.
func TestRunsThatCreateTheRecordAtOnce(t *testing.T) {
	c := newClient(t)
	created := 0
	late := interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if created++; created == 1 {
				if _, err := liveReconciler(c).ensureRecord(ctx, newScope(csv1.ClusterAddonStatus{})); err != nil {
					return err
				}
			}
			return w.Create(ctx, o, opts...)
		},
	})
	ch := &chart{asks: []string{"a"}}
	all, err := liveReconciler(late).renderFromRecord(t.Context(), newScope(csv1.ClusterAddonStatus{}), ch.render)
	_, rec := storedSecret(t, c)
	if keys := renderedKeys(t, all, err); keys != string(rec.Keys["a"]) || created != 1 {
		t.Errorf("%q, %v, created %d times", keys, rec.Keys, created)
	}
}

// Whoever always loses gives up, and is asked again; what is known of the add-ons stays.
func TestRecordThatIsAlwaysInConflict(t *testing.T) {
	c := newClient(t)
	r, s, ch := liveReconciler(c), newScope(csv1.ClusterAddonStatus{}), &chart{asks: []string{"a"}}
	ch.before = func(int) {
		_, rec := storedSecret(t, c)
		rec.Time = rec.Time.Add(time.Second)
		storeRecord(t, c, rec)
	}
	_, err := r.renderFromRecord(t.Context(), s, ch.render)
	if !reconcile.IsWait(err) || ch.renders != maxRenderings || conditionOf(s.addon, csv1.ConditionApplied) != (cond{}) {
		t.Errorf("%v, %d renderings, %+v", err, ch.renders, s.addon.Status.Conditions)
	}
}

func TestChartThatAsksForOtherKeysEachTime(t *testing.T) {
	r, s, ch := liveReconciler(newClient(t)), newScope(csv1.ClusterAddonStatus{}), &chart{}
	ch.asks = []string{"0"}
	ch.before = func(rendering int) { ch.asks = []string{fmt.Sprint(rendering)} }
	_, err := r.renderFromRecord(t.Context(), s, ch.render)
	want := cond{"False", csv1.ReasonApplyFailed, errKeysVary.Error()}
	if got := conditionOf(s.addon, csv1.ConditionApplied); !reconcile.IsWait(err) || got != want {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestRecordThatIsFull(t *testing.T) {
	c := newClient(t)
	r, s, ch := liveReconciler(c), newScope(csv1.ClusterAddonStatus{}), &chart{asks: []string{"a"}}
	rec, err := r.ensureRecord(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	storeRecord(t, c, rec.WithKeys(render.Keys{"large": make([]byte, maxRecordSize/4*3)}))
	secret, _ := storedSecret(t, c)
	all, err := r.renderFromRecord(t.Context(), s, ch.render)
	want := cond{"False", csv1.ReasonApplyFailed, "the record in Secret a/cluster-addon-demo has 1 private keys of charts and " +
		"no room for 1 more, which would make it larger than 1020 KiB; set keys to {} in it to have all keys made anew, " +
		"passwords stay"}
	if got := conditionOf(s.addon, csv1.ConditionApplied); all != nil || !reconcile.IsWait(err) || got != want {
		t.Errorf("%v, %v, %+v", all, err, got)
	}
	if again, _ := storedSecret(t, c); again.ResourceVersion != secret.ResourceVersion {
		t.Error("the record was written")
	}
	// What needs no more keys goes on, and certificates are renewed.
	ch.asks, ch.days = []string{"large"}, -1
	if _, err := r.renderFromRecord(t.Context(), s, ch.render); err != nil {
		t.Error(err)
	}
	if _, rec := storedSecret(t, c); rec.Renewed.IsZero() {
		t.Error("certificates are not renewed")
	}
}

// A record of the old form stays as it is.
func TestRecordWithoutKeysIsNotChanged(t *testing.T) {
	c := newClient(t)
	r, s, ch := liveReconciler(c), newScope(csv1.ClusterAddonStatus{}), &chart{days: 3650}
	if _, err := r.ensureRecord(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	old := render.FixedRecord()
	old.Time = time.Now()
	storeRecord(t, c, old)
	was, _ := storedSecret(t, c)
	if _, err := r.renderFromRecord(t.Context(), s, ch.render); err != nil {
		t.Error(err)
	}
	is, _ := storedSecret(t, c)
	if is.ResourceVersion != was.ResourceVersion || ch.renders != 1 {
		t.Errorf("%s", is.Data[recordKey])
	}
	old.Time = time.Now().AddDate(-9, 0, 0)
	storeRecord(t, c, old)
	if _, err := r.renderFromRecord(t.Context(), s, ch.render); err != nil {
		t.Error(err)
	}
	if _, rec := storedSecret(t, c); rec.Keys != nil || rec.Renewed.IsZero() || ch.renders != 3 {
		t.Errorf("%+v", rec)
	}
}

// A renewal loses no key that another run has stored meanwhile.
func TestRenewalKeepsKeysOfOthers(t *testing.T) {
	c := newClient(t)
	r, s, ch := liveReconciler(c), newScope(csv1.ClusterAddonStatus{}), &chart{days: -1}
	ch.before = func(rendering int) {
		if _, rec := storedSecret(t, c); rendering == 1 {
			storeRecord(t, c, rec.WithKeys(render.Keys{"other": []byte("key")}))
		}
	}
	if _, err := r.renderFromRecord(t.Context(), s, ch.render); err != nil {
		t.Fatal(err)
	}
	// Its certificate is over at once, and is still renewed only once in a run.
	if _, rec := storedSecret(t, c); string(rec.Keys["other"]) != "key" || rec.Renewed.IsZero() || ch.renders != 3 {
		t.Errorf("%+v, %d renderings", rec, ch.renders)
	}
}

func TestRecordThatCannotBeRead(t *testing.T) {
	const seed = `"seed":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","time":"2024-01-01T00:00:00Z"`
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"keys":          {"{" + seed + `,"keys":{}}`, true},
		"keys are lost": {"{" + seed + "}", false},
		"keys are null": {"{" + seed + `,"keys":null}`, false},
		"no JSON":       {"{", false},
		"empty":         {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{recordKey: []byte(c.text)}}
			secret.Namespace, secret.Name = "a", "cluster-addon-demo"
			_, err := liveReconciler(newClient(t, secret)).ensureRecord(t.Context(), newScope(csv1.ClusterAddonStatus{}))
			const want = "the key record of Secret a/cluster-addon-demo cannot be read"
			if c.good != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}
