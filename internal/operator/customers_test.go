package operator

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/provider"
)

// Defaults must be set before anything is checked, and no request may get around either.
func TestMutatingWebhooks(t *testing.T) {
	type asked struct {
		URL, Group, Version, Resource string
		Operations                    []admissionv1.OperationType
	}
	w := mutatingWebhooks("https://127.0.0.1:1", []byte("authority"))
	got := map[string]asked{}
	for _, h := range w.Webhooks {
		rule := h.Rules[0]
		got[h.Name] = asked{*h.ClientConfig.URL, rule.APIGroups[0], rule.APIVersions[0], rule.Resources[0], rule.Operations}
		if *h.FailurePolicy != admissionv1.Fail || *h.MatchPolicy != admissionv1.Equivalent || *h.SideEffects != admissionv1.SideEffectClassNone ||
			*rule.Scope != admissionv1.NamespacedScope || *h.ReinvocationPolicy != admissionv1.NeverReinvocationPolicy {
			t.Errorf("%s: %+v", h.Name, h)
		}
		if string(h.ClientConfig.CABundle) != "authority" || *h.TimeoutSeconds != 10 || !slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) ||
			len(h.Rules) != 1 || len(h.MatchConditions) > 0 {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
	want := map[string]asked{
		"default.workloadcluster.polder.dev": {"https://127.0.0.1:1/default-workloadcluster", "polder.dev", "v1alpha1", "workloadclusters",
			[]admissionv1.OperationType{"CREATE", "UPDATE"}},
		"default.kubeconfigrequest.polder.dev": {"https://127.0.0.1:1/default-kubeconfigrequest", "polder.dev", "v1alpha1", "kubeconfigrequests",
			[]admissionv1.OperationType{"CREATE"}},
	}
	if d := cmp.Diff(want, got); d != "" || w.Name != "polder-operator" {
		t.Error(w.Name, d)
	}
}

// Every operation that sets defaults is checked, too, and each webhook has a path of its own.
func TestWhatIsFilledInIsChecked(t *testing.T) {
	paths, checked := map[string]bool{}, map[string][]admissionv1.OperationType{}
	for _, h := range validatingWebhooks("", nil).Webhooks {
		checked[h.Rules[0].Resources[0]] = h.Rules[0].Operations
		paths[*h.ClientConfig.URL] = true
	}
	for _, h := range mutatingWebhooks("", nil).Webhooks {
		for _, o := range h.Rules[0].Operations {
			if !slices.Contains(checked[h.Rules[0].Resources[0]], o) {
				t.Errorf("%s: nobody checks %s", h.Name, o)
			}
		}
		if paths[*h.ClientConfig.URL] {
			t.Errorf("%s has the path of another", h.Name)
		}
		paths[*h.ClientConfig.URL] = true
	}
}

// Webhooks time out after ten seconds: a call to a provider that hangs must end before that, so that people are told
// why.
func TestProvidersAreGivenUpBeforeAdmissionIs(t *testing.T) {
	for _, h := range validatingWebhooks("", nil).Webhooks {
		if float64(*h.TimeoutSeconds) <= ProviderTimeout.Seconds() {
			t.Errorf("%s waits for %d s", h.Name, *h.TimeoutSeconds)
		}
	}
}

type named string

func (n named) Describe() provider.Description                         { return provider.Description{Name: string(n)} }
func (named) Validate(context.Context, provider.Input) field.ErrorList { return nil }
func (named) Topology(context.Context, provider.Input) (provider.Topology, error) {
	return provider.Topology{}, nil
}

// panickingProvider cannot describe itself.
type panickingProvider struct{ named }

func (panickingProvider) Describe() provider.Description { panic("oh") }

func TestGuardProviders(t *testing.T) {
	got, err := GuardProviders(t.Context(), []provider.Provider{named("a"), panickingProvider{}, named("b")})
	if !errors.Is(err, guard.ErrPanicked) ||
		err.Error() != "asking a provider (operator.panickingProvider) who it is: the provider's code broke down: Describe: oh" {
		t.Error(err)
	}
	if len(got) != 2 || got["a"].Name() != "a" || got["b"].Name() != "b" {
		t.Errorf("%v", got)
	}
}
