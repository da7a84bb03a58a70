package heartbeat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/provider"
)

var errBroken = errors.New("broken")

// stubProvider is a provider whose description and health a test chooses.
type stubProvider struct {
	describe func() provider.Description
	health   func(context.Context) error
}

func (p *stubProvider) Describe() provider.Description                         { return p.describe() }
func (p *stubProvider) Health(ctx context.Context) error                       { return p.health(ctx) }
func (*stubProvider) Validate(context.Context, provider.Input) field.ErrorList { return nil }
func (*stubProvider) Topology(context.Context, provider.Input) (t provider.Topology, err error) {
	return t, err
}

func description() provider.Description {
	return provider.Description{
		Name: "p", Title: "The P", Version: "v1", Capabilities: []string{"x"}, Zones: []string{"z"}, AnyShape: true,
		MachineTypes: []v1alpha1.MachineType{{Name: "small", CPU: 1}}, Parameters: map[string]map[string]any{"c": {"type": "string"}},
	}
}

// fixture is a publisher with its provider, its clock, and a count of its writes.
type fixture struct {
	*heartbeat.Publisher
	provider *stubProvider
	clock    *clocktesting.FakePassiveClock
	writes   int
	funcs    interceptor.Funcs
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	d := &fixture{
		clock:    clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
		provider: &stubProvider{describe: description, health: func(context.Context) error { return nil }},
	}
	d.funcs = interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			d.writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			d.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			d.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
	all := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Provider{}).WithObjects(objects...).Build()
	g, err := guard.New(t.Context(), d.provider, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	d.Publisher = &heartbeat.Publisher{Client: interceptor.NewClient(all, d.funcs), Provider: g, Clock: d.clock}
	return d
}

// publishOnce lets the publisher run once, and returns the object and how many writes were made.
func (d *fixture) publishOnce(t *testing.T) (o *v1alpha1.Provider, writes int) {
	t.Helper()
	d.writes = 0
	if err := d.PublishOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	o = &v1alpha1.Provider{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: "p"}, o); err != nil {
		t.Fatal(err)
	}
	return o, d.writes
}

func TestWhatIsWritten(t *testing.T) {
	o, _ := newFixture(t).publishOnce(t)
	ready := o.Status.Conditions[0]
	if len(o.Status.Conditions) != 1 || ready.Type != v1alpha1.ConditionReady || ready.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonReady {
		t.Errorf("%+v", o.Status.Conditions)
	}
	if got := o.Status.LastSeenTime.UTC(); got != time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) {
		t.Errorf("%s", got)
	}
	o.Status.Conditions, o.Status.LastSeenTime = nil, nil
	want := v1alpha1.ProviderStatus{
		Title: "The P", Version: "v1", StackProvider: "p", Capabilities: []string{"x"}, Zones: []string{"z"}, AnyShape: true,
		MachineTypes: []v1alpha1.MachineType{{Name: "small", CPU: 1}}, Parameters: &provider.JSON{Raw: []byte(`{"c":{"type":"string"}}`)},
	}
	if d := cmp.Diff(want, o.Status); d != "" {
		t.Error(d)
	}
}

func TestWhenItIsWritten(t *testing.T) {
	d := newFixture(t)
	for _, step := range []struct {
		name   string
		change func()
		writes int
	}{
		{"it is not there", func() {}, 2}, // the object, and its status
		{"nothing has changed", func() {}, 0},
		{"time goes by", func() { d.clock.SetTime(d.clock.Now().Add(heartbeat.RenewInterval - time.Second)) }, 0},
		{"it has to be said again", func() { d.clock.SetTime(d.clock.Now().Add(time.Second)) }, 1},
		{"a process with another clock", func() { d.clock.SetTime(d.clock.Now().Add(-time.Hour)) }, 1},
		{"and is said once", func() { d.clock.SetTime(d.clock.Now().Add(time.Second)) }, 0},
		{"the infrastructure is away", func() { d.provider.health = func(context.Context) error { return errBroken } }, 1},
		{"it still is", func() { d.clock.SetTime(d.clock.Now().Add(time.Second)) }, 0},
		{"it is back", func() { d.provider.health = func(context.Context) error { return nil } }, 1},
		{"there is another version of it", func() {
			d.provider.describe = func() provider.Description { x := description(); x.Version = "v2"; return x }
		}, 1},
		{"lists are empty instead of missing", func() {
			d.provider.describe = func() provider.Description {
				return provider.Description{Name: "p", Zones: []string{}, Parameters: map[string]map[string]any{}}
			}
		}, 1},
		{"which is the same", func() { d.provider.describe = func() provider.Description { return provider.Description{Name: "p"} } }, 0},
	} {
		step.change()
		o, writes := d.publishOnce(t)
		if writes != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, writes, step.writes)
		}
		if d.clock.Now().Sub(o.Status.LastSeenTime.Time) >= heartbeat.RenewInterval {
			t.Errorf("%s: last seen %s", step.name, o.Status.LastSeenTime)
		}
	}
	if o, _ := d.publishOnce(t); o.Status.Parameters != nil || o.Status.MachineTypes != nil {
		t.Errorf("what it does not have any more is still told: %+v", o.Status)
	}
}

func TestAProviderThatIsNotWell(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*stubProvider)
		reason  string
		message string
	}{
		"its infrastructure is away": {
			func(p *stubProvider) {
				p.health = func(context.Context) error { return errors.New("the cloud\nis away") }
			}, v1alpha1.ReasonProviderFailed, "the cloud is away",
		},
		"it panics when asked how it is": {
			func(p *stubProvider) { p.health = func(context.Context) error { panic("oh") } }, v1alpha1.ReasonProviderPanicked, "the provider's code broke down: Health: oh",
		},
		"it panics when asked who it is": {
			func(p *stubProvider) { p.describe = func() provider.Description { panic("oh") } }, v1alpha1.ReasonProviderPanicked, "the provider's code broke down: Describe: oh",
		},
		"its parameters are none": {
			func(p *stubProvider) {
				p.describe = func() provider.Description {
					return provider.Description{Name: "p", Parameters: map[string]map[string]any{"c": {"x": make(chan int)}}}
				}
			}, v1alpha1.ReasonProviderFailed, "the schema of its parameters: json: unsupported type: chan int",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			c.change(d.provider)
			o, _ := d.publishOnce(t)
			got := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != c.reason || got.Message != c.message {
				t.Errorf("%+v", got)
			}
			if o.Status.LastSeenTime == nil {
				t.Error("it runs, and that is not said")
			}
		})
	}
	t.Run("what it said of itself stays while it cannot say it", func(t *testing.T) {
		d := newFixture(t)
		d.publishOnce(t)
		d.provider.describe = func() provider.Description { panic("oh") }
		if o, _ := d.publishOnce(t); o.Status.Title != "The P" || len(o.Status.MachineTypes) != 1 {
			t.Errorf("%+v", o.Status)
		}
	})
	t.Run("it does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, release := newFixture(t), make(chan struct{})
			defer close(release)
			d.provider.health = func(context.Context) error { <-release; return nil }
			o, _ := d.publishOnce(t)
			if got := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady); got == nil || got.Reason != v1alpha1.ReasonProviderTimedOut {
				t.Errorf("%+v", got)
			}
		})
	})
}

// A provider whose description is refused by the API is published all the same, with what is wrong.
func TestWhatIsNotTaken(t *testing.T) {
	d := newFixture(t)
	d.Admission = &v1alpha1.ProviderAdmission{URL: "https://p", CABundle: "old"}
	d.publishOnce(t)
	d.Admission = &v1alpha1.ProviderAdmission{URL: "https://p", CABundle: "new"}
	d.funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
		opts ...client.SubResourcePatchOption) error {
		if data, err := p.Data(o); err != nil || strings.Contains(string(data), `"capabilities":`) {
			return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Provider").GroupKind(), "p", field.ErrorList{
				field.Duplicate(field.NewPath("status", "capabilities").Index(1), "x"),
			})
		}
		d.writes++
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}
	d.Client = interceptor.NewClient(d.Client.(client.WithWatch), d.funcs)
	d.provider.describe = func() provider.Description {
		x := description()
		x.Title, x.Capabilities = "The Q", []string{"x", "x"}
		return x
	}
	d.clock.SetTime(d.clock.Now().Add(time.Hour))
	for _, want := range []int{2, 0} { // the fixture's own client counts it, too
		o, writes := d.publishOnce(t)
		ready := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
		if writes != want || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonProviderFailed ||
			ready.Message != `what the provider says of itself is not taken: Provider.polder.dev "p" is invalid: status.capabilities[1]: Duplicate value: "x"` {
			t.Errorf("%d writes, %+v", writes, ready)
		}
		if !o.Status.LastSeenTime.Equal(&metav1.Time{Time: d.clock.Now().Truncate(time.Second)}) || o.Status.Admission.CABundle != "new" ||
			o.Status.Title != "The P" {
			t.Errorf("%+v", o.Status)
		}
	}
}

// Two processes of one provider start at the same moment.
func TestAnotherWasFaster(t *testing.T) {
	there := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"of": "another"}}}
	d := newFixture(t, there)
	missed := false
	d.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if !missed {
			missed = true
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("providers").GroupResource(), "p")
		}
		return c.Get(ctx, key, o, opts...)
	}
	d.Client = interceptor.NewClient(d.Client.(client.WithWatch), d.funcs)
	if o, _ := d.publishOnce(t); o.Status.Title != "The P" || o.Labels["of"] != "another" {
		t.Errorf("%+v", o)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	get := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errBroken
	}
	create := func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errBroken }
	patch := func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return errBroken
	}
	for name, funcs := range map[string]interceptor.Funcs{"it cannot be read": {Get: get}, "it cannot be made": {Create: create},
		"its status cannot be written": {SubResourcePatch: patch}} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			d.Client = interceptor.NewClient(d.Client.(client.WithWatch), funcs)
			if err := d.PublishOnce(t.Context()); !errors.Is(err, errBroken) {
				t.Error(err)
			}
		})
	}
}

// The publisher asks twice a minute until it is stopped, whatever goes wrong in between.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		asked := 0
		d.funcs.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			asked++
			return errBroken
		}
		d.Client = interceptor.NewClient(d.Client.(client.WithWatch), d.funcs)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second)
		defer cancel()
		if err := d.Start(ctx); err != nil || asked != 11 {
			t.Errorf("asked %d times, %v", asked, err)
		}
	})
}
