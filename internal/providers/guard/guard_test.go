package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/provider"
)

const timeout = 5 * time.Second

// stubProvider does in Topology and Validate what a test says.
type stubProvider struct {
	does func(context.Context, provider.Input) (provider.Topology, error)
}

func (stubProvider) Describe() provider.Description { return provider.Description{Name: "p"} }

func (p stubProvider) Validate(ctx context.Context, in provider.Input) field.ErrorList {
	_, err := p.does(ctx, in)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return nil
}

func (p stubProvider) Topology(ctx context.Context, in provider.Input) (provider.Topology, error) {
	return p.does(ctx, in)
}

// healthy is a stubProvider with a health check.
type healthy struct {
	stubProvider
	how func() error
}

func (h healthy) Health(context.Context) error { return h.how() }

// talker is a provider whose description a test chooses.
type talker struct {
	healthy
	says  provider.Description
	wrong func() // called before Describe returns
}

func (p *talker) Describe() provider.Description {
	if p.wrong != nil {
		p.wrong()
	}
	return p.says
}

func input() provider.Input {
	return provider.Input{
		Cluster: &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{"a": "b"}}},
		Release: provider.Release{
			Workers: []string{"w"},
			Variables: []provider.Variable{
				{Name: "v", Schema: map[string]any{
					"enum": []any{"x", "y"}, "oneOf": []any{map[string]any{"type": "string"}}, "properties": map[string]any{"p": map[string]any{"type": "string"}},
				}},
			},
		},
	}
}

func TestCallsThatEnd(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		does func() (provider.Topology, error)
		is   error
		text string
	}{
		"an answer":          {does: func() (provider.Topology, error) { return provider.Topology{Labels: map[string]string{"a": "b"}}, nil }},
		"an error stays one": {does: func() (provider.Topology, error) { return provider.Topology{}, broken }, is: broken, text: "broken"},
		"a panic": {does: func() (provider.Topology, error) { panic("oh") }, is: guard.ErrPanicked,
			text: "the provider's code broke down: Topology: oh"},
		"a panic with an error": {does: func() (provider.Topology, error) { panic(broken) }, is: guard.ErrPanicked,
			text: "the provider's code broke down: Topology: broken"},
		"a nil map": {does: func() (t provider.Topology, err error) { t.Labels["a"] = "b"; return t, nil }, is: guard.ErrPanicked,
			text: "the provider's code broke down: Topology: assignment to entry in nil map"},
		"no answer at all": {does: func() (provider.Topology, error) { runtime.Goexit(); return provider.Topology{}, nil }, is: guard.ErrPanicked,
			text: "the provider's code broke down: Topology ended without an answer"},
		"a panic of many words": {does: func() (provider.Topology, error) { panic(strings.Repeat("x", 9999)) }, is: guard.ErrPanicked,
			text: "the provider's code broke down: Topology: " + strings.Repeat("x", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			g := guarded(t, stubProvider{func(context.Context, provider.Input) (provider.Topology, error) { return c.does() }})
			got, err := g.Topology(t.Context(), input())
			if !errors.Is(err, c.is) || (err == nil) != (c.is == nil) || err != nil && err.Error() != c.text {
				t.Errorf("%v, want %q", err, c.text)
			}
			if err == nil && got.Labels["a"] != "b" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestEveryCallIsGuarded(t *testing.T) {
	bad := func(context.Context, provider.Input) (provider.Topology, error) { panic("oh") }
	g := guarded(t, healthy{stubProvider{bad}, func() error { panic("oh") }})
	_, validate := g.Validate(t.Context(), input())
	_, topology := g.Topology(t.Context(), input())
	for name, err := range map[string]error{"Validate": validate, "Topology": topology, "Health": g.Health(t.Context())} {
		if !errors.Is(err, guard.ErrPanicked) || !strings.Contains(err.Error(), name+": oh") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := guarded(t, stubProvider{bad}).Health(t.Context()); err != nil {
		t.Errorf("one that cannot say how it is counts as well: %v", err)
	}
	if d, err := g.Describe(t.Context()); err != nil || d.Name != "p" || g.Name() != "p" {
		t.Errorf("%+v, %v", d, err)
	}
}

// guarded returns a guard of a provider that can describe itself.
func guarded(t *testing.T, p provider.Provider) *guard.Guard {
	t.Helper()
	g, err := guard.New(t.Context(), p, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hung returns a guarded provider that hangs for clusters of the name hangs, whatever its context says, until the
// test ends.
func hung(t *testing.T) *guard.Guard {
	t.Helper()
	release := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	return guarded(t, stubProvider{func(_ context.Context, in provider.Input) (provider.Topology, error) {
		if in.Cluster.Name == "hangs" {
			<-release
		}
		return provider.Topology{}, nil
	}})
}

func hangs() provider.Input { return hangsIn("") }

// hangsIn returns the input of another cluster that hangs.
func hangsIn(namespace string) provider.Input {
	in := input()
	in.Cluster.Namespace, in.Cluster.Name = namespace, "hangs"
	return in
}

func TestOneThatHangsHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hung(t)
		start, done := time.Now(), make(chan error)
		go func() { _, err := g.Topology(t.Context(), hangs()); done <- err }()
		synctest.Wait()
		if _, err := g.Topology(t.Context(), input()); err != nil || time.Since(start) != 0 {
			t.Errorf("another call: %v after %s", err, time.Since(start))
		}
		err := <-done
		if !errors.Is(err, guard.ErrTimedOut) || err.Error() != "the provider does not answer: Topology did not end within 5s" || time.Since(start) != timeout {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestOneThatHangsForGoodTakesNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hung(t)
		var all sync.WaitGroup
		for i := range 256 {
			all.Go(func() {
				if _, err := g.Topology(t.Context(), hangsIn(strconv.Itoa(i))); !errors.Is(err, guard.ErrTimedOut) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		before, start := runtime.NumGoroutine(), time.Now()
		for range 3 {
			_, err := g.Topology(t.Context(), input())
			if !errors.Is(err, guard.ErrTimedOut) || err.Error() != "the provider does not answer: 256 calls before this one have not come to an end" {
				t.Error(err)
			}
		}
		if got := time.Since(start); got != 3*timeout || runtime.NumGoroutine() > before {
			t.Errorf("it took %s, and %d goroutines were %d", got, runtime.NumGoroutine(), before)
		}
	})
}

// A cluster for which the provider hangs again and again does not use up the calls of others.
func TestOneClusterTakesNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hung(t)
		for range 40 {
			if _, err := g.Topology(t.Context(), hangs()); !errors.Is(err, guard.ErrTimedOut) {
				t.Error(err)
			}
		}
		start := time.Now()
		if _, err := g.Topology(t.Context(), hangs()); err == nil || err.Error() != "the provider does not answer: 8 calls for this cluster have not come to an end" {
			t.Error(err)
		}
		if _, err := g.Topology(t.Context(), input()); err != nil || time.Since(start) != 0 {
			t.Errorf("another cluster: %v after %s", err, time.Since(start))
		}
	})
}

// Thirty clusters for which the provider hangs for good leave room for others.
func TestManyThatHangLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hung(t)
		for range 10 {
			var all sync.WaitGroup
			for i := range 30 {
				all.Go(func() { _, _ = g.Topology(t.Context(), hangsIn(strconv.Itoa(i))) })
			}
			all.Wait()
		}
		start := time.Now()
		if _, err := g.Topology(t.Context(), input()); err != nil || time.Since(start) != 0 {
			t.Errorf("another cluster: %v after %s", err, time.Since(start))
		}
	})
}

// Describe and Health wait neither for calls for clusters nor for each other.
func TestTheProviderItselfIsAskedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		p := &talker{says: provider.Description{Name: "p", Zones: []string{"a"}, Parameters: map[string]map[string]any{"x": {"maximum": int64(9007199254740993)}}}}
		p.does = func(context.Context, provider.Input) (provider.Topology, error) {
			<-release
			return provider.Topology{}, nil
		}
		p.how = func() error { return nil }
		g := guarded(t, p)
		for i := range 256 {
			go func() { _, _ = g.Topology(t.Context(), hangsIn(strconv.Itoa(i))) }()
		}
		synctest.Wait()
		start := time.Now()
		d, err := g.Describe(t.Context())
		if err != nil || g.Health(t.Context()) != nil || time.Since(start) != 0 || d.Zones[0] != "a" {
			t.Errorf("%+v, %v, %v after %s", d, err, g.Health(t.Context()), time.Since(start))
		}
		p.how = func() error { <-release; return nil }
		for range 5 {
			if err := g.Health(t.Context()); !errors.Is(err, guard.ErrTimedOut) {
				t.Error(err)
			}
		}
		p.says.Zones[0], p.says.Parameters["x"]["maximum"] = "b", 1
		if got := g.LastDescription(); got.Zones[0] != "a" || fmt.Sprint(got.Parameters["x"]["maximum"]) != "9007199254740993" {
			t.Errorf("what is known is shared: %+v", got)
		}
		if d, err := g.Describe(t.Context()); err != nil || d.Zones[0] != "b" || g.LastDescription().Zones[0] != "b" {
			t.Errorf("%+v, %v, known: %+v", d, err, g.LastDescription())
		}
		p.wrong = func() { <-release }
		for range 5 {
			if _, err := g.Describe(t.Context()); !errors.Is(err, guard.ErrTimedOut) {
				t.Error(err)
			}
		}
		start = time.Now()
		if got := g.LastDescription(); got.Zones[0] != "b" || time.Since(start) != 0 {
			t.Errorf("it is not known any more: %+v", got)
		}
	})
}

// A provider that cannot describe itself does not end the process that calls it.
func TestNobodyKnowsWhoItIs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, c := range map[string]struct {
		wrong func()
		is    error
	}{
		"it breaks down": {func() { panic("oh") }, guard.ErrPanicked},
		"it hangs":       {func() { <-release }, guard.ErrTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if g, err := guard.New(ctx, &talker{wrong: c.wrong}, 10*time.Millisecond); g != nil || !errors.Is(err, c.is) ||
				!strings.HasPrefix(err.Error(), "asking a provider (*guard_test.talker) who it is: ") {
				t.Errorf("%v, %v", g, err)
			}
		})
	}
}

func TestThereIsRoomAgainOnceCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context, in provider.Input) (provider.Topology, error) {
			if in.Cluster.Name == "hangs" {
				time.Sleep(time.Minute)
			}
			return provider.Topology{}, nil
		}
		g := guarded(t, stubProvider{slow})
		for i := range 80 {
			go func() { _, _ = g.Topology(t.Context(), hangsIn(strconv.Itoa(i))) }()
		}
		time.Sleep(2 * time.Minute)
		start := time.Now()
		if _, err := g.Topology(t.Context(), input()); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestTheProviderIsToldThatNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, stubProvider{func(ctx context.Context, _ provider.Input) (provider.Topology, error) {
			<-ctx.Done()
			return provider.Topology{}, ctx.Err()
		}})
		if _, err := g.Topology(t.Context(), input()); err == nil {
			t.Error("no error")
		}
	})
}

// That its caller went away is no fault of a provider.
func TestTheCallerGoesAway(t *testing.T) {
	for name, full := range map[string]int{"while the provider works": 0, "while it waits for its turn": 256} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := hung(t)
				for i := range full {
					go func() { _, _ = g.Topology(t.Context(), hangsIn(strconv.Itoa(i))) }()
				}
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				time.AfterFunc(time.Second, cancel)
				_, err := g.Topology(ctx, hangs())
				if !errors.Is(err, context.Canceled) || errors.Is(err, guard.ErrTimedOut) || time.Since(start) != time.Second {
					t.Errorf("%v after %s", err, time.Since(start))
				}
			})
		})
	}
}

func TestWhatAProviderGetsIsACopy(t *testing.T) {
	g := guarded(t, stubProvider{func(_ context.Context, in provider.Input) (provider.Topology, error) {
		in.Cluster.Name, in.Cluster.Labels["a"] = "other", "c"
		in.Release.Workers[0] = "other"
		in.Release.Variables[0].Schema["enum"].([]any)[0] = "z"
		in.Release.Variables[0].Schema["oneOf"].([]any)[0].(map[string]any)["type"] = "integer"
		in.Release.Variables[0].Schema["properties"].(map[string]any)["p"].(map[string]any)["type"] = "integer"
		in.Release.Variables[0].Name = "other"
		return provider.Topology{}, nil
	}})
	in := input()
	if _, err := g.Topology(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(input(), in); d != "" {
		t.Error("Topology", d)
	}
	in = input()
	if _, err := g.Validate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(input(), in); d != "" {
		t.Error("Validate", d)
	}
}

// A provider may keep its answer and give it to all who ask; what one of them adds to it is not seen by others.
func TestWhatAProviderAnswersIsACopy(t *testing.T) {
	same := func() provider.Topology {
		of := func() provider.Values {
			return provider.Values{"n": int64(9007199254740993), "f": 1.5, "none": nil, "list": []string{"a"}, "map": map[string]any{"k": "v"}}
		}
		return provider.Topology{
			Variables: of(), ControlPlane: provider.Machines{Variables: of()}, Pools: map[string]provider.Machines{"a": {Class: "c", Variables: of()}},
			Labels: map[string]string{},
		}
	}
	kept := same()
	g := guarded(t, stubProvider{func(context.Context, provider.Input) (provider.Topology, error) { return kept, nil }})
	for range 2 {
		got, err := g.Topology(t.Context(), input())
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(same())
		if is, err := json.Marshal(got); err != nil || string(is) != string(want) {
			t.Errorf("%s, %v; want %s", is, err, want)
		}
		if got.Annotations != nil || got.Labels == nil || got.Pools["a"].Class != "c" {
			t.Errorf("%+v", got)
		}
		got.Pools["b"], got.Labels["b"], got.Variables["b"] = provider.Machines{}, "b", "b"
		got.Pools["a"].Variables["map"].(map[string]any)["k"] = "other"
	}
	if d := cmp.Diff(same(), kept); d != "" {
		t.Error(d)
	}
}

// badly is a value that cannot be written as JSON.
type badly struct{}

func (badly) MarshalJSON() ([]byte, error) { panic("oh") }

func TestAnAnswerThatIsNoJSON(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		text  string
	}{
		"a channel":             {make(chan int), "what the provider answers cannot be written as JSON: json: unsupported type: chan int"},
		"one that breaks down":  {badly{}, "the provider's code broke down: Topology: oh"},
		"a number that is none": {math.NaN(), "what the provider answers cannot be written as JSON: json: unsupported value: NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			g := guarded(t, stubProvider{func(context.Context, provider.Input) (provider.Topology, error) {
				return provider.Topology{Variables: provider.Values{"v": c.value}}, nil
			}})
			if _, err := g.Topology(t.Context(), input()); err == nil || err.Error() != c.text {
				t.Errorf("%v, want %s", err, c.text)
			}
		})
	}
}
