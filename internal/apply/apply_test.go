package apply

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// mapped is a client that knows kinds and nothing else. How an API server behaves is tested with a real one, in
// test/operator.
type mapped struct {
	client.Client
	mapper meta.RESTMapper
}

func (c mapped) RESTMapper() meta.RESTMapper { return c.mapper }

func newCluster() client.Client {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Pod"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "Service"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	} {
		m.Add(k, meta.RESTScopeNamespace)
	}
	for _, k := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Version: "v1", Kind: "Node"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	} {
		m.Add(k, meta.RESTScopeRoot)
	}
	return mapped{mapper: m}
}

func applier(rules ...Rule) *Applier {
	return &Applier{Client: newCluster(), Owner: "test", Namespace: "home", Rules: rules}
}

// parse reads one object for each text.
func parse(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range texts {
		b, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// named returns an object with nothing but a name.
func named(apiVersion, kind, name string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %q}}", apiVersion, kind, name)
}

func within(namespace, apiVersion, kind, name string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %q, namespace: %s}}", apiVersion, kind, name, namespace)
}

func prepare(t *testing.T, a *Applier, texts ...string) *Set {
	t.Helper()
	set, err := a.Prepare(t.Context(), parse(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func names(refs []Ref) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.String())
	}
	return out
}
