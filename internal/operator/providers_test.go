package operator

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// celOf returns a function that evaluates expressions as the API server does.
func celOf(t *testing.T) func(expression string, with map[string]any) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType),
		cel.Variable("variables", cel.DynType), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	return func(expression string, with map[string]any) any {
		t.Helper()
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		p, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := p.Eval(with)
		if err != nil {
			return err
		}
		return got.Value()
	}
}

// allowedByPolicy returns the message of the first validation that refuses a request of user; "" if the policy allows
// it.
func allowedByPolicy(t *testing.T, user, resource, namespace string, object, old any) string {
	t.Helper()
	eval, p := celOf(t), providerPolicy().Spec
	variables := map[string]any{}
	with := map[string]any{"object": object, "oldObject": old, "variables": variables, "request": map[string]any{
		"namespace": namespace, "resource": map[string]any{"resource": resource}, "userInfo": map[string]any{"username": user},
	}}
	for k, v := range with {
		if v == nil {
			with[k] = types.NullValue
		}
	}
	for _, m := range p.MatchConditions {
		if eval(m.Expression, with) != true {
			return ""
		}
	}
	for _, v := range p.Variables {
		variables[v.Name] = eval(v.Expression, with)
	}
	for _, v := range p.Validations {
		if got := eval(v.Expression, with); got != true {
			return v.Message
		}
	}
	return ""
}

// A provider acts only on objects that name it, whatever its role lets it write.
func TestProvidersAreKeptToTheirOwn(t *testing.T) {
	const acme, space = "system:serviceaccount:polder-providers:acme", v1alpha1.ProvidersNamespace
	named := func(name string) any { return map[string]any{"metadata": map[string]any{"name": name}} }
	of := func(provider string) any {
		return map[string]any{"spec": map[string]any{"provider": provider}, "metadata": map[string]any{"labels": map[string]any{v1alpha1.ProviderLabel: provider}}}
	}
	const lease = "a provider holds the lease that is called after it, and no others"
	for name, c := range map[string]struct {
		user, resource, namespace string
		object, old               any
		want                      string
	}{
		"its lease, made":            {acme, "leases", space, named("polder-provider-acme"), nil, ""},
		"its lease, renewed":         {acme, "leases", space, named("polder-provider-acme"), named("polder-provider-acme"), ""},
		"another's lease":            {acme, "leases", space, named("polder-provider-other"), named("polder-provider-other"), lease},
		"another's lease, made":      {acme, "leases", space, named("polder-provider-other"), nil, lease},
		"another's lease, deleted":   {acme, "leases", space, nil, named("polder-provider-other"), lease},
		"a lease of a name like its": {acme, "leases", space, named("polder-provider-acme-2"), nil, lease},
		"a lease of its bare name":   {acme, "leases", space, named("acme"), nil, lease},
		"a lease it has elsewhere":   {acme, "leases", "acme-system", named("any"), nil, ""},
		"a lease of somebody else":   {"polder:operator", "leases", space, named("any"), nil, ""},
		"its object":                 {acme, "providers", "", named("acme"), named("acme"), ""},
		"another's object":           {acme, "providers", "", named("other"), named("other"), "a provider describes itself, and no others"},
		"its cluster":                {acme, "workloadclusters", "team", of("acme"), of("acme"), ""},
		"another's cluster": {acme, "workloadclusters", "team", of("other"), of("other"),
			"a provider acts on WorkloadClusters that name it, and on no others"},
		"its Cluster":                  {acme, "clusters", "team", of("acme"), nil, ""},
		"a Cluster that was another's": {acme, "clusters", "team", of("acme"), of("other"), "a provider acts on Clusters of its own, and on no others"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allowedByPolicy(t, c.user, c.resource, c.namespace, c.object, c.old); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	asked := map[string]bool{}
	for _, r := range providerPolicy().Spec.MatchConstraints.ResourceRules {
		for _, resource := range r.Resources {
			asked[r.APIGroups[0]+"/"+resource] = len(r.Operations) == 3
		}
	}
	for _, want := range []string{"coordination.k8s.io/leases", "polder.dev/workloadclusters", "polder.dev/workloadclusters/status", "polder.dev/providers",
		"polder.dev/providers/status", "cluster.x-k8s.io/clusters"} {
		if !asked[want] {
			t.Errorf("nobody looks at %s", want)
		}
	}
}
