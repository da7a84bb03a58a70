package runtimehooks

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamespaceSelector(t *testing.T) {
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	without := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	tests := map[string]struct {
		selector *metav1.LabelSelector
		object   client.Object
		selected bool
		want     string // error
	}{
		"empty selects all":                  {&metav1.LabelSelector{}, cluster("plain"), true, ""},
		"empty needs no namespace":           {&metav1.LabelSelector{}, cluster("missing"), true, ""},
		"nil selects none":                   {nil, cluster("gold"), false, ""},
		"labels match":                       {gold, cluster("gold"), true, ""},
		"labels do not match":                {gold, cluster("plain"), false, ""},
		"expressions match":                  {without, cluster("plain"), true, ""},
		"expressions do not match":           {without, cluster("gold"), false, ""},
		"namespace is missing":               {gold, cluster("missing"), false, `getting namespace "missing"`},
		"object is missing":                  {gold, nil, false, "object the hook is called for is nil"},
		"object is missing, selector is not": {&metav1.LabelSelector{}, nil, false, "object the hook is called for is nil"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := startGateServer(t, answer(success))
			config.Spec.NamespaceSelector = tt.selector
			config.Status.Handlers[0].FailurePolicy = runtimev1.FailurePolicyIgnore // covers none of this
			c := warmClient(t, config)

			names, err := c.GetAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, tt.object)
			checkError(t, err, tt.want)
			if selected := len(names) == 1; selected != tt.selected {
				t.Errorf("GetAllExtensions returns %q", names)
			}

			want := tt.want
			if want == "" && !tt.selected {
				want = "its namespaceSelector does not match namespace"
			}
			err = c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, tt.object, "gate.ext", upgrade(), &runtimehooksv1.BeforeClusterUpgradeResponse{})
			checkError(t, err, want)
		})
	}
}
