package operator

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
)

// ground is where a test applies: a namespace of its own, with a client that counts its requests.
type ground struct {
	*apply.Applier
	t        *testing.T
	requests *requests
}

// requests counts by method; Discovery is apart.
type requests struct{ Get, Patch, Delete, Discovery, Other atomic.Int64 }

func newGround(t *testing.T) *ground {
	t.Helper()
	plane := shared.Get(t)
	cfg := plane.RESTConfig(t)
	n := &requests{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, n} })
	return &ground{t: t, requests: n, Applier: &apply.Applier{
		Client: newLive(t, rest.CopyConfig(cfg)), Owner: "polder-test", Namespace: plane.CreateNamespace(t),
	}}
}

type counting struct {
	http.RoundTripper
	n *requests
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && (len(parts) < 3 || parts[0] == "apis" && len(parts) == 3):
		c.n.Discovery.Add(1)
	case r.Method == http.MethodGet:
		c.n.Get.Add(1)
	case r.Method == http.MethodPatch:
		c.n.Patch.Add(1)
	case r.Method == http.MethodDelete:
		c.n.Delete.Add(1)
	default:
		c.n.Other.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// group is an API group that no other test has.
func (g *ground) group() string { return g.Namespace + ".example.com" }

// parse reads documents; NAMESPACE and GROUP in them are those of the test.
func (g *ground) parse(text string) []*unstructured.Unstructured {
	g.t.Helper()
	text = strings.NewReplacer("NAMESPACE", g.Namespace, "GROUP", g.group()).Replace(text)
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split(text, "\n---\n") {
		b, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			g.t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, &u.Object); err != nil {
			g.t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func (g *ground) prepare(text string) *apply.Set {
	g.t.Helper()
	set, err := g.Prepare(g.t.Context(), g.parse(text))
	if err != nil {
		g.t.Fatal(err)
	}
	return set
}

// apply applies documents of which none is trusted and returns errors and changes by object.
func (g *ground) apply(text string) (map[string]string, []apply.Result) {
	g.t.Helper()
	results := g.Apply(g.t.Context(), g.prepare(text), nil)
	return g.told(results), results
}

// told returns the error or the change of each result, by object, without the namespace of the test.
func (g *ground) told(results []apply.Result) map[string]string {
	g.t.Helper()
	out := map[string]string{}
	for _, r := range results {
		name := strings.ReplaceAll(r.Ref.String(), g.Namespace+"/", "")
		switch {
		case r.Err != nil:
			out[name] = r.Err.Error()
		default:
			out[name] = string(r.Change)
		}
	}
	if len(out) != len(results) {
		g.t.Errorf("an object has two results: %v", results)
	}
	return out
}

// mustApply applies documents, of which none may fail.
func (g *ground) mustApply(text string) []apply.Result {
	g.t.Helper()
	_, results := g.apply(text)
	if err := apply.JoinErrors(results); err != nil {
		g.t.Fatal(err)
	}
	return results
}

func (g *ground) create(o client.Object) {
	g.t.Helper()
	if o.GetNamespace() == "" {
		o.SetNamespace(g.Namespace)
	}
	if err := g.Client.Create(g.t.Context(), o, client.FieldOwner("somebody")); err != nil {
		g.t.Fatal(err)
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func ours(o client.Object) client.Object {
	o.SetLabels(map[string]string{csv1.OwnedLabel: csv1.OwnedValue})
	return o
}

// data is the data of a ConfigMap; nil if there is none.
func (g *ground) data(name string) map[string]string {
	g.t.Helper()
	var c corev1.ConfigMap
	if err := client.IgnoreNotFound(g.Client.Get(g.t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: name}, &c)); err != nil {
		g.t.Fatal(err)
	}
	return c.Data
}

func (g *ground) exists(o client.Object) bool {
	g.t.Helper()
	err := g.Client.Get(g.t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if client.IgnoreNotFound(err) != nil {
		g.t.Fatal(err)
	}
	return err == nil
}

// patch sends a merge patch as somebody else.
func (g *ground) patch(o client.Object, patch string) {
	g.t.Helper()
	if o.GetNamespace() == "" {
		o.SetNamespace(g.Namespace)
	}
	if err := g.Client.Patch(g.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("somebody")); err != nil {
		g.t.Fatal(err)
	}
}

// versions are the resource versions of objects.
func versions(results []apply.Result) map[string]string {
	out := map[string]string{}
	for _, r := range results {
		if r.Object != nil {
			out[r.Ref.String()] = r.Object.GetResourceVersion()
		}
	}
	return out
}

// meddling is a client that lets something happen before or after its requests.
type meddling struct {
	client.Client
	beforeApply  func(name string) error
	beforeDelete func(name string)
	afterDelete  func(name string)
}

func (m meddling) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if m.beforeApply != nil {
		if err := m.beforeApply(o.(interface{ GetName() string }).GetName()); err != nil {
			return err
		}
	}
	return m.Client.Apply(ctx, o, opts...)
}

func (m meddling) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if m.beforeDelete != nil {
		m.beforeDelete(o.GetName())
	}
	err := m.Client.Delete(ctx, o, opts...)
	if m.afterDelete != nil {
		m.afterDelete(o.GetName())
	}
	return err
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.GROUP
  creationTimestamp: null
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
status:
  acceptedNames: {kind: "", plural: ""}
  conditions: []
  storedVersions: []
`

const widget = `
apiVersion: GROUP/v1
kind: Widget
metadata: {name: x}
spec: {size: 1}
`
