package customer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestHostileInputs sends what is meant to keep the plane busy for ever, past the command line, which would not. It is
// refused at once, in words that somebody can read, and others are served as before.
func TestHostileInputs(t *testing.T) {
	p := shared.Get(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	catalogueIsThere(t, c)
	shape := func(memory string) string {
		return fmt.Sprintf(`"workers": [{"name": "a", "machine": {"cpu": 1, "memory": %q}}]`, memory)
	}
	mirrors := func(n int) string {
		return `"parameters": {"registryMirrors": [{}` + strings.Repeat(`,{}`, n) + `]}`
	}
	for name, tt := range map[string]struct{ spec, want string }{
		"an amount that nobody can compare": {shape("1e2000000000"), "spec.workers[0].machine.memory"},
		"an amount that nobody can read":    {shape("1e-2000000000"), "spec.workers[0].machine.memory"},
		"more mistakes than anybody reads":  {mirrors(99), "more is wrong than these 50; correct them first"},
		"a list that nobody reads":          {mirrors(15_000), "spec.parameters.registryMirrors: Invalid value: it must have at most 100 entries"},
		"more than any stack takes":         {mirrors(500_000), "spec.parameters: Invalid value: all together they are more than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON([]byte(`{"apiVersion": "polder.dev/v1alpha1", "kind": "WorkloadCluster", "metadata": {"name": "bad"}, "spec": {"provider": "local", "stack": {"name": "scs"}, ` + tt.spec + `}}`)); err != nil {
				t.Fatal(err)
			}
			u.SetNamespace(ns)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := c.Create(ctx, u)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 20_000 {
				t.Errorf("the plane says %.2000v", err)
			}
		})
	}
	good := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provider": "local", "stack": map[string]any{"name": "scs"}, "paused": true}}}
	good.SetAPIVersion("polder.dev/v1alpha1")
	good.SetKind("WorkloadCluster")
	good.SetNamespace(ns)
	good.SetName("good")
	if err := c.Create(t.Context(), good, client.DryRunAll); err != nil {
		t.Errorf("after all that, a good one: %v", err)
	}
}
