package operator

import (
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func newProviderWebhook() *admissionv1.ValidatingWebhookConfiguration {
	p := &v1alpha1.Provider{}
	p.Name, p.UID = "my-cloud", "uid"
	p.Status.Admission = &v1alpha1.ProviderAdmission{URL: "https://provider.example:9443/validate", CABundle: "authority"}
	return providerWebhook(p)
}

func TestProviderWebhook(t *testing.T) {
	w := newProviderWebhook()
	hook := w.Webhooks[0]
	if w.Name != "polder-provider-my-cloud" || len(w.Webhooks) != 1 || *hook.ClientConfig.URL != "https://provider.example:9443/validate" ||
		string(hook.ClientConfig.CABundle) != "authority" {
		t.Errorf("%+v", w)
	}
	if len(w.OwnerReferences) != 1 || w.OwnerReferences[0].UID != "uid" {
		t.Errorf("it does not go with its provider: %+v", w.OwnerReferences)
	}
	if *hook.FailurePolicy != admissionv1.Fail || *hook.SideEffects != admissionv1.SideEffectClassNone || len(hook.Rules) != 1 ||
		hook.Rules[0].Resources[0] != "workloadclusters" {
		t.Errorf("%+v", hook)
	}
	for _, o := range hook.Rules[0].Operations {
		if o == admissionv1.Delete || o == admissionv1.OperationAll {
			t.Errorf("without the provider nobody could delete a cluster: %v", hook.Rules)
		}
	}
}

// A provider that has moved into the plane's process is no longer asked at its old URL.
func TestDeleteProviderWebhook(t *testing.T) {
	moved := &v1alpha1.Provider{}
	moved.Name, moved.UID = "my-cloud", "uid"
	older := newProviderWebhook()
	older.OwnerReferences[0].UID = "of one that was deleted"
	foreign := newProviderWebhook()
	foreign.OwnerReferences = nil
	s := scheme(t)
	if err := admissionv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		there *admissionv1.ValidatingWebhookConfiguration
		stays bool
	}{
		"its own": {newProviderWebhook(), false}, "its own, of older days": {older, false}, "what somebody else made": {foreign, true}, "none": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(s)
			if c.there != nil {
				b.WithObjects(c.there)
			}
			plane := b.Build()
			if err := deleteProviderWebhook(t.Context(), plane, moved); err != nil {
				t.Fatal(err)
			}
			err := plane.Get(t.Context(), client.ObjectKey{Name: "polder-provider-my-cloud"}, &admissionv1.ValidatingWebhookConfiguration{})
			if c.stays != (err == nil) {
				t.Error(err)
			}
		})
	}
	spoke := moved.DeepCopy()
	spoke.Status.Admission = &v1alpha1.ProviderAdmission{}
	if !admissionEndpointChanged(event.UpdateEvent{ObjectOld: spoke, ObjectNew: moved}) ||
		admissionEndpointChanged(event.UpdateEvent{ObjectOld: moved, ObjectNew: moved.DeepCopy()}) {
		t.Error("nobody hears that it has moved")
	}
}

// A provider that is away blocks only changes that concern it.
func TestProviderWebhookMatchConditions(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	var programs []cel.Program
	for _, m := range newProviderWebhook().Webhooks[0].MatchConditions {
		ast, issues := env.Compile(m.Expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		p, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	of := func(provider string, replicas int, more ...any) any {
		spec := map[string]any{"controlPlane": map[string]any{"replicas": replicas}}
		if provider != "" {
			spec["provider"] = provider
		}
		for i := 0; i+1 < len(more); i += 2 {
			spec[more[i].(string)] = more[i+1]
		}
		return map[string]any{"spec": spec}
	}
	for name, c := range map[string]struct {
		old, object any
		want        bool
	}{
		"a new one of its own":       {nil, of("my-cloud", 1), true},
		"a new one of another":       {nil, of("my-cloud-2", 1), false},
		"a new one of nobody":        {nil, of("", 1), false},
		"its machines are changed":   {of("my-cloud", 1), of("my-cloud", 3), true},
		"the machines of another's":  {of("other", 1), of("other", 3), false},
		"it gets pools":              {of("my-cloud", 1), of("my-cloud", 1, "workers", []any{"a"}), true},
		"it loses OIDC":              {of("my-cloud", 1, "oidc", "x"), of("my-cloud", 1), true},
		"another parameter":          {of("my-cloud", 1, "parameters", "x"), of("my-cloud", 1, "parameters", "y"), true},
		"nothing of that is changed": {of("my-cloud", 1, "parameters", "x"), of("my-cloud", 1, "parameters", "x"), false},
		"it had text for a spec":     {map[string]any{"spec": "text"}, of("my-cloud", 1), true},
		"it had no spec":             {map[string]any{}, of("my-cloud", 1), true},
		"it is paused":               {of("my-cloud", 1), of("my-cloud", 1, "paused", true), false},
		"it loses its protection":    {of("my-cloud", 1, "deletionProtection", true), of("my-cloud", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := len(programs) > 0
			for i, p := range programs {
				out, _, err := p.Eval(map[string]any{"object": c.object, "oldObject": c.old})
				if err != nil {
					t.Errorf("condition %d: %v", i, err)
					continue
				}
				got = got && out.Value() == true
			}
			if got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
