package providertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
	"github.com/polder-kaas/polder/test/instant"
)

// recorder is a test that only records its errors.
type recorder struct{ messages []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

// goodProvider is a provider with machine types of its own; each of its functions can be replaced by a bad one.
type goodProvider struct {
	describe func(provider.Description) provider.Description
	validate func(context.Context, provider.Input, field.ErrorList) field.ErrorList
	topology func(context.Context, provider.Input, provider.Topology, error) (provider.Topology, error)
}

func (g goodProvider) base() provider.Description {
	return provider.Description{
		Name: "good", Title: "Good", Zones: []string{"a", "b"}, Capabilities: []string{"x"},
		MachineTypes: []v1alpha1.MachineType{{Name: "small", Portable: "SCS-2V-4", CPU: 2, MemoryMiB: 4096}, {Name: "odd", CPU: 3, MemoryMiB: 5000}},
		Parameters:   map[string]map[string]any{"network": {"type": "string", "description": "Its name."}},
	}
}

func (g goodProvider) Describe() provider.Description {
	if g.describe == nil {
		return g.base()
	}
	return g.describe(g.base())
}

func (g goodProvider) Validate(ctx context.Context, in provider.Input) field.ErrorList {
	if g.validate == nil {
		return scsvars.Validate(g.base(), in)
	}
	return g.validate(ctx, in, scsvars.Validate(g.base(), in))
}

func (g goodProvider) Topology(ctx context.Context, in provider.Input) (provider.Topology, error) {
	t, err := scsvars.Topology(g.base(), in)
	if err != nil {
		t = provider.Topology{}
	}
	if g.topology == nil {
		return t, err
	}
	return g.topology(ctx, in, t, err)
}

// runSuite runs the whole suite and returns what it reports, by rule.
func runSuite(t *testing.T, p provider.Provider, o Options) map[string][]string {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 100 * time.Millisecond
	}
	out := map[string][]string{}
	s := newSuite(p, o)
	for _, r := range rules {
		rec := &recorder{}
		report(rec, r.check(t.Context(), s))
		if len(rec.messages) > 0 {
			out[r.name] = rec.messages
		}
	}
	return out
}

func TestGoodProvidersPass(t *testing.T) {
	Run(t, goodProvider{}, Options{Secrets: []string{"hunter2"}})
	Run(t, instant.New(), Options{})
}

// withDescription is a provider with another description.
func withDescription(change func(*provider.Description)) goodProvider {
	return goodProvider{describe: func(d provider.Description) provider.Description { change(&d); return d }}
}

// withTopology is a provider with another topology, where it has one.
func withTopology(change func(provider.Input, *provider.Topology)) goodProvider {
	return goodProvider{topology: func(_ context.Context, in provider.Input, t provider.Topology, err error) (provider.Topology, error) {
		if err == nil {
			change(in, &t)
		}
		return t, err
	}}
}

var shared = []string{"a", "b"} // that a bad provider hands out

func TestBadProvidersFail(t *testing.T) {
	var calls atomic.Int64
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) }) // after all parallel tests
	type test struct {
		provider provider.Provider
		rule     string
		words    string // that a sentence must have
	}
	for name, c := range map[string]test{
		"panics in Describe": {withDescription(func(*provider.Description) { panic("oh") }), "calls come back", "Describe panics: oh"},
		"panics in Topology": {withTopology(func(provider.Input, *provider.Topology) { panic("oh") }), "calls come back", "Topology panics: oh"},
		"panics without variables": {withTopology(func(in provider.Input, _ *provider.Topology) { _ = in.Release.Variables[0] }), "calls come back",
			"of release sample-bare-1-37-v1: Topology panics"},
		"panics without workers": {withTopology(func(in provider.Input, _ *provider.Topology) { _ = in.Cluster.Spec.Workers[0] }), "calls come back",
			"a cluster without workers"},
		"panics without OIDC": {withTopology(func(in provider.Input, _ *provider.Topology) { _ = in.Cluster.Spec.OIDC.ClientID }), "calls come back",
			"nil pointer"},
		"panics with OIDC": {withTopology(func(in provider.Input, _ *provider.Topology) {
			if in.Cluster.Spec.OIDC != nil {
				panic("oh")
			}
		}), "calls come back", "a cluster with OpenID Connect"},
		"panics with many pools": {withTopology(func(in provider.Input, _ *provider.Topology) { _ = [99]int{}[len(in.Cluster.Spec.Workers)] }), "calls come back",
			"a cluster with 100 pools"},
		"panics in Validate": {goodProvider{validate: func(context.Context, provider.Input, field.ErrorList) field.ErrorList { panic("oh") }}, "calls come back",
			"Validate panics"},
		"hangs": {withTopology(func(in provider.Input, _ *provider.Topology) {
			if in.Release.Name == "sample-bare-1-37-v1" && in.Cluster.Spec.Workers == nil {
				<-hang
			}
		}), "calls come back", "Topology does not come back within 100ms"},

		"name is none": {withDescription(func(d *provider.Description) { d.Name = "Good One" }), "description is sound",
			`the name "Good One" of the provider`},
		"stack is none": {withDescription(func(d *provider.Description) { d.StackProvider = "a-b" }), "description is sound",
			"no release can be for this provider"},
		"zone is none": {withDescription(func(d *provider.Description) { d.Zones = []string{"a_b"} }), "description is sound", `zone "a_b"`},
		"zone twice":   {withDescription(func(d *provider.Description) { d.Zones = []string{"a", "a"} }), "description is sound", `two zones "a"`},
		"type twice": {withDescription(func(d *provider.Description) { d.MachineTypes[1].Name = "small" }), "description is sound",
			`two machine types "small"`},
		"type without name": {withDescription(func(d *provider.Description) { d.MachineTypes[1].Name = "" }), "description is sound", "no name"},
		"type without CPU":  {withDescription(func(d *provider.Description) { d.MachineTypes[1].CPU = 0 }), "description is sound", "has 0 CPUs"},
		"portable name unread": {withDescription(func(d *provider.Description) { d.MachineTypes[0].Portable = "SCS-2" }), "description is sound",
			"the portable name"},
		"portable name differs": {withDescription(func(d *provider.Description) { d.MachineTypes[0].MemoryMiB = 2048 }), "description is sound",
			"by its portable name SCS-2V-4 2 and 4096"},
		"parameter is no schema": {withDescription(func(d *provider.Description) { d.Parameters["network"]["type"] = "text" }), "description is sound",
			`the schema of parameter "network"`},
		"parameter without name": {withDescription(func(d *provider.Description) { d.Parameters[""] = map[string]any{"type": "string"} }), "description is sound",
			"a parameter has no name"},
		"parameter is no JSON": {withDescription(func(d *provider.Description) { d.Parameters["network"]["default"] = math.NaN() }), "description is sound",
			"JSON"},

		"description changes": {withDescription(func(d *provider.Description) { d.Version = fmt.Sprint(calls.Add(1)) }), "description stays the same",
			"another answer"},
		"description is shared": {withDescription(func(d *provider.Description) { d.Zones = shared }), "description stays the same", "whoever changes an answer"},

		"changes the cluster": {withTopology(func(in provider.Input, _ *provider.Topology) { in.Cluster.Labels = map[string]string{"seen": "yes"} }),
			"input is not changed", "Topology changes what it was given"},
		"changes the schema": {withTopology(func(in provider.Input, _ *provider.Topology) {
			for _, v := range in.Release.Variables {
				v.Schema["seen"] = true
			}
		}), "input is not changed", "seen"},
		"changes in Validate": {goodProvider{validate: func(_ context.Context, in provider.Input, l field.ErrorList) field.ErrorList {
			in.Cluster.Name = "x"
			return l
		}}, "input is not changed", "Validate changes"},

		"answers by chance": {withTopology(func(_ provider.Input, t *provider.Topology) {
			t.Labels = map[string]string{"x": fmt.Sprint(rand.Int())}
		}), "topology is pure", "another answer to the same input"},
		"answers by history": {withTopology(answerByHistory()), "topology is pure", "another answer"},
		"answers by the map": {withTopology(answerByMap), "topology is pure", "another answer"},

		"ignores the context": {goodProvider{topology: func(ctx context.Context, _ provider.Input, t provider.Topology, err error) (provider.Topology, error) {
			if ctx.Err() != nil {
				<-hang
			}
			return t, err
		}}, "contexts are heeded", "Topology does not come back within 100ms if its context has been cancelled"},
		"Validate ignores the context": {goodProvider{validate: func(ctx context.Context, _ provider.Input, l field.ErrorList) field.ErrorList {
			if ctx.Err() != nil {
				<-hang
			}
			return l
		}}, "contexts are heeded", "Validate does not come back within 100ms if its context has expired"},
		"answers by half": {goodProvider{topology: func(ctx context.Context, _ provider.Input, t provider.Topology, err error) (provider.Topology, error) {
			if ctx.Err() != nil {
				return provider.Topology{}, nil
			}
			return t, err
		}}, "contexts are heeded", "another answer than usual and no error"},
		"answers by half with an error": {goodProvider{topology: func(ctx context.Context, _ provider.Input, t provider.Topology, err error) (provider.Topology,
			error) {
			if ctx.Err() != nil {
				return provider.Topology{Labels: map[string]string{"half": "yes"}}, ctx.Err()
			}
			return t, err
		}}, "contexts are heeded", "an error and a part of an answer"},

		"accepts what it cannot do": {goodProvider{validate: func(context.Context, provider.Input, field.ErrorList) field.ErrorList { return nil }},
			"validation agrees", "Validate accepts it, and Topology cannot do it"},
		"names no field": {goodProvider{validate: func(_ context.Context, _ provider.Input, l field.ErrorList) field.ErrorList {
			for _, e := range l {
				e.Field = "machineType"
			}
			return l
		}}, "validation agrees", `a field below spec, not "machineType"`},
		"gives no reason": {goodProvider{validate: func(_ context.Context, _ provider.Input, l field.ErrorList) field.ErrorList {
			for _, e := range l {
				e.Detail = ""
			}
			return l
		}}, "validation agrees", "does not say what is wrong with spec."},

		"sets unknown variables": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Variables["colour"] = "red" }), "topology fits the release",
			`the cluster sets the variable "colour"`},
		"sets unknown ones of pools": {withTopology(func(_ provider.Input, t *provider.Topology) {
			t.Pools["pool"] = provider.Machines{Variables: provider.Values{"colour": "red"}}
		}), "topology fits the release", `pool pool sets the variable "colour"`},
		"sets unknown ones of the control plane": {withTopology(func(_ provider.Input, t *provider.Topology) {
			t.ControlPlane.Variables = provider.Values{"colour": "red"}
		}), "topology fits the release", "the control plane sets"},
		"has a class of its own": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Pools["pool"] = provider.Machines{Class: "gold"} }),
			"topology fits the release", `of class "gold"`},
		"has a pool of its own": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Pools["mine"] = provider.Machines{} }),
			"topology fits the release", `an entry for pool "mine"`},
		"has values that are no JSON": {withTopology(setVariable("flavor", func() {})), "topology fits the release", "cannot be written as JSON"},
		"has values that are null":    {withTopology(setVariable("flavor", nil)), "topology fits the release", "null is no value"},
		"has values of another type":  {withTopology(setVariable("flavor", 7)), "topology fits the release", "its schema refuses"},
		"has labels that are none": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Labels = map[string]string{"a b": "c"} }),
			"topology fits the release", "the label a b=c is none"},
		"has annotations that are none": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Annotations = map[string]string{"a b": "c"} }),
			"topology fits the release", "the annotation a b is none"},

		"refuses without help": {goodProvider{validate: func(_ context.Context, _ provider.Input, l field.ErrorList) field.ErrorList {
			for _, e := range l {
				e.Detail = "no"
			}
			return l
		}}, "machine types are answered", "without a word of what machines there are"},

		"tells in its description": {withDescription(func(d *provider.Description) { d.Title = "token hunter2" }), "secrets stay secret",
			"the description has a secret"},
		"tells in a topology": {withTopology(func(_ provider.Input, t *provider.Topology) { t.Annotations = map[string]string{"token": "hunter2"} }),
			"secrets stay secret", "the topology has a secret"},
		"tells in an error": {goodProvider{topology: func(_ context.Context, _ provider.Input, t provider.Topology, err error) (provider.Topology, error) {
			if err != nil {
				err = errors.New("401 with token hunter2")
			}
			return t, err
		}}, "secrets stay secret", "an error of Topology has a secret"},
		"tells in a late error": {goodProvider{topology: func(ctx context.Context, _ provider.Input, t provider.Topology, err error) (provider.Topology, error) {
			if ctx.Err() != nil {
				return provider.Topology{}, errors.New("https://hunter2@example.org: " + ctx.Err().Error())
			}
			return t, err
		}}, "secrets stay secret", "an error of Topology has a secret"},
		"tells in a field": {goodProvider{validate: func(_ context.Context, _ provider.Input, l field.ErrorList) field.ErrorList {
			for _, e := range l {
				e.Detail = "hunter2"
			}
			return l
		}}, "secrets stay secret", "an error of Validate has a secret"},
		"tells in a panic": {withTopology(func(provider.Input, *provider.Topology) { panic("hunter2") }), "secrets stay secret", "an error of Topology has a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runSuite(t, c.provider, Options{Secrets: []string{"hunter2"}})
			text := strings.Join(got[c.rule], "\n")
			if !strings.Contains(text, c.words) {
				t.Errorf("rule %q does not say %q: %v", c.rule, c.words, got)
			}
			if c.rule == "secrets stay secret" && strings.Contains(text, "hunter2") {
				t.Errorf("the suite tells it itself: %s", text)
			}
		})
	}
}

// answerByHistory answers by what was asked before.
func answerByHistory() func(provider.Input, *provider.Topology) {
	var last atomic.Value
	return func(in provider.Input, t *provider.Topology) {
		before, _ := last.Swap(in.Release.Name).(string)
		t.Labels = map[string]string{"before": before}
	}
}

// answerByMap answers by the first label of a map, whose order is random.
func answerByMap(in provider.Input, t *provider.Topology) {
	for _, p := range in.Cluster.Spec.Workers {
		for k := range p.Labels {
			t.Labels = map[string]string{"first": k}
			return
		}
	}
}

// setVariable sets a variable of the cluster, if there is one of this name.
func setVariable(name string, value any) func(provider.Input, *provider.Topology) {
	return func(in provider.Input, t *provider.Topology) {
		if in.Release.Has(name) {
			t.Variables[name] = value
		}
	}
}

func TestReportsAreShort(t *testing.T) {
	rec := &recorder{}
	report(rec, make([]finding, 9))
	if len(rec.messages) != maxReported+1 || rec.messages[maxReported] != "and 4 more of the same rule, at least" {
		t.Errorf("%q", rec.messages)
	}
}
