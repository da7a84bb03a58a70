package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admission1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

const v1, v2 = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"

var errBroken = errors.New("broken")

// indexer adds indexes to a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.WithIndex(o, field, f)
	return nil
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), clusterv1.AddToScheme(s), csv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...)
	if err := lineage.IndexClustersByClass(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// failing fails reads of one type of object or list, and passes on all others.
func failing(c client.WithWatch, at any) client.Reader {
	same := func(o any) bool { return reflect.TypeOf(o) == reflect.TypeOf(at) }
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if same(o) {
				return errBroken
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			if same(o) {
				return errBroken
			}
			return c.List(ctx, o, opts...)
		},
	})
}

func newStack(name string, change func(*csv1.ClusterStack)) *csv1.ClusterStack {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name, UID: types.UID(name)}}
	s.Spec = csv1.ClusterStackSpec{Provider: "docker", Name: "ferrol", KubernetesVersion: "1.27", Channel: csv1.ChannelStable}
	if change != nil {
		change(s)
	}
	return s
}

func serving(label string) *csv1.ClusterStack {
	return newStack("ferrol", func(s *csv1.ClusterStack) {
		s.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"kaas": label}}
	})
}

// newRelease makes a release that has its class, and is for Kubernetes v1.27.3.
func newRelease(name, owner string) *csv1.ClusterStackRelease {
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name}}
	r.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStack", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)},
	}
	r.Status.Resources = []csv1.Resource{
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "ClusterClass", Namespace: "s", Name: name, Status: csv1.ResourceSynced},
	}
	r.Status.KubernetesVersion = "v1.27.3"
	return r
}

func newCluster(namespace, class, version string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}}
	c.Spec.Topology.ClassRef, c.Spec.Topology.Version = clusterv1.ClusterClassRef{Namespace: "s", Name: class}, version
	return c
}

func newWorkload(name string) *v1alpha1.WorkloadCluster {
	return &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name}}
}

func namespaces() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"kaas": "yes"}}}, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "b"},
		},
	}
}

// request makes a request about an object, which is both the old and the new one.
func request(t *testing.T, namespace, name string, o client.Object) admission.Request {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admission1.AdmissionRequest{
		Namespace: namespace, Name: name, Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: raw},
	}}
}

// checkResponse compares a response with the wanted one: allowed if code is 0.
func checkResponse(t *testing.T, got admission.Response, code int32, message string) {
	t.Helper()
	wantAllowed := code == 0
	if wantAllowed {
		code = http.StatusOK
	}
	if got.Allowed != wantAllowed || got.Result == nil || got.Result.Code != code || got.Result.Message != message {
		t.Errorf("allowed: %t, %+v; want %d %q", got.Allowed, got.Result, code, message)
	}
}

func TestCheckCluster(t *testing.T) {
	unknown := newRelease(v1, "ferrol")
	unknown.Status.KubernetesVersion = ""
	noClass := newRelease(v1, "ferrol")
	noClass.Status.Resources = nil
	notYet := newRelease(v1, "ferrol")
	notYet.Status.Resources[0].Status = csv1.ResourceNotSynced
	foreign := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: v1}}
	invalid := newStack("ferrol", func(s *csv1.ClusterStack) {
		s.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kaas", Operator: "Perhaps"}}}
	})
	const notServed = "spec.topology.classRef: class s/docker-ferrol-1-27-v1 does not serve clusters of namespace b; its ClusterStack must allow it in spec.allowedNamespaces"
	const notThere = "spec.topology.classRef: there is no class s/docker-ferrol-1-27-v1 yet; a class of another namespace can be used once it is there, and serves namespace b"
	for name, c := range map[string]struct {
		cluster *clusterv1.Cluster
		have    []client.Object
		failing any
		code    int32
		message string
	}{
		"a cluster without a class":                       {cluster: &clusterv1.Cluster{}},
		"a class of somebody else":                        {cluster: newCluster("b", "quick-start", "v1.30.0"), have: []client.Object{newRelease(v1, "ferrol")}},
		"a class of a release that is not there":          {cluster: newCluster("b", v1, "v1.30.0"), code: 403, message: notThere},
		"a class that is not there, of its own namespace": {cluster: newCluster("s", v1, "v1.30.0")},
		"nobody knows whether the class is there": {cluster: newCluster("b", v1, "v1.30.0"), failing: &metav1.PartialObjectMetadata{}, code: 500,
			message: "broken"},
		"a class of somebody else, without a release":    {cluster: newCluster("b", v1, "v1.30.0"), have: []client.Object{foreign}},
		"a class that only has the name of a release's":  {cluster: newCluster("b", v1, "v1.30.0"), have: []client.Object{noClass, foreign}},
		"a release that has no class, and none is there": {cluster: newCluster("b", v1, "v1.30.0"), have: []client.Object{noClass}, code: 403, message: notThere},
		"a class of somebody else, who was there first":  {cluster: newCluster("b", v1, "v1.30.0"), have: []client.Object{notYet, foreign}},
		"a class that is not there yet":                  {cluster: newCluster("b", v1, "v1.27.3"), have: []client.Object{notYet}, code: 403, message: notServed},
		"the class cannot be read": {cluster: newCluster("s", v1, "v1.27.3"), have: []client.Object{notYet},
			failing: &metav1.PartialObjectMetadata{}, code: 500, message: "broken"},
		"a cluster beside its stack": {cluster: newCluster("s", v1, "v1.27.3"), have: []client.Object{
			newRelease(v1, "ferrol"), newStack("ferrol", nil),
		}},
		"a cluster beside its release, whose stack is gone": {cluster: newCluster("s", v1, "v1.27.3"), have: []client.Object{newRelease(v1, "ferrol")}},
		"a namespace that is served": {cluster: newCluster("a", v1, "v1.27.3"), have: []client.Object{
			newRelease(v1, "ferrol"), serving("yes"),
		}},
		"a namespace that is not served": {cluster: newCluster("b", v1, "v1.27.3"),
			have: []client.Object{newRelease(v1, "ferrol"), serving("yes")}, code: 403, message: notServed},
		"a stack that serves nobody": {cluster: newCluster("b", v1, "v1.27.3"),
			have: []client.Object{newRelease(v1, "ferrol"), newStack("ferrol", nil)}, code: 403, message: notServed},
		"a release without a stack serves nobody": {cluster: newCluster("b", v1, "v1.27.3"), have: []client.Object{newRelease(v1, "gone"), serving("yes")},
			code: 403, message: notServed},
		"another version of Kubernetes": {
			cluster: newCluster("s", v1, "v1.27.4"), have: []client.Object{newRelease(v1, "ferrol")}, code: 403,
			message: "spec.topology.version: class s/docker-ferrol-1-27-v1 is made and tested for Kubernetes v1.27.3, not v1.27.4; write version: v1.27.3",
		},
		"nobody knows the version yet": {cluster: newCluster("s", v1, "v1.27.4"), have: []client.Object{unknown}},
		"a selector that is none": {
			cluster: newCluster("a", v1, "v1.27.3"), have: []client.Object{newRelease(v1, "ferrol"), invalid}, code: 500,
			message: `spec.allowedNamespaces of ClusterStack s/ferrol: "Perhaps" is not a valid label selector operator`,
		},
		"the release cannot be read": {cluster: newCluster("s", v1, "v1.27.3"), failing: &csv1.ClusterStackRelease{}, code: 500, message: "broken"},
		"the stacks cannot be read": {cluster: newCluster("s", v1, "v1.27.3"), have: []client.Object{newRelease(v1, "ferrol")}, failing: &csv1.ClusterStackList{},
			code: 500, message: "looking for the stack of release docker-ferrol-1-27-v1: broken"},
		"the namespace cannot be read": {cluster: newCluster("a", v1, "v1.27.3"), have: []client.Object{newRelease(v1, "ferrol"), serving("yes")},
			failing: &corev1.Namespace{}, code: 500, message: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			all := newClient(t, append(namespaces(), c.have...)...)
			var reader client.Reader = all
			if c.failing != nil {
				reader = failing(all, c.failing)
			}
			checkResponse(t, checkCluster(reader, admission.NewDecoder(all.Scheme()))(t.Context(), request(t, c.cluster.Namespace, "demo", c.cluster)), c.code,
				c.message)
		})
	}
	bad := request(t, "a", "demo", newCluster("a", v1, ""))
	bad.Object.Raw = []byte("{")
	if got := checkCluster(newClient(t), admission.NewDecoder(scheme(t)))(t.Context(), bad); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("%+v", got)
	}
}

func TestCheckRelease(t *testing.T) {
	const used = "the release is used by a/demo, b/demo; give them another class, or delete them"
	clusters := newClient(t, newCluster("a", v1, ""), newCluster("b", v1, ""), newCluster("c", v2, ""))
	for name, c := range map[string]struct {
		reader          client.Reader
		namespace, name string
		code            int32
		message         string
	}{
		"clusters use it":                       {clusters, "s", v1, 403, used},
		"nobody uses it":                        {clusters, "s", "docker-ferrol-1-27-v3", 0, ""},
		"nobody uses that of another namespace": {clusters, "a", v1, 0, ""},
		"it is none":                            {clusters, "s", "quick-start", 0, ""},
		"nobody knows": {failing(clusters, &clusterv1.ClusterList{}), "s", v1, 500,
			"looking for clusters of class s/docker-ferrol-1-27-v1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			checkResponse(t, checkRelease(c.reader)(t.Context(), request(t, c.namespace, c.name, newRelease(c.name, "ferrol"))), c.code, c.message)
			// All of a kind are deleted at once.
			checkResponse(t, checkRelease(c.reader)(t.Context(), request(t, c.namespace, "", newRelease(c.name, "ferrol"))), c.code, c.message)
		})
	}
	bad := request(t, "s", "", newRelease(v1, "ferrol"))
	for _, raw := range []string{"", "{", "{}"} {
		bad.OldObject.Raw = []byte(raw)
		if got := checkRelease(newClient(t))(t.Context(), bad); got.Allowed || got.Result.Code != http.StatusBadRequest {
			t.Errorf("%q: %+v", raw, got)
		}
	}
}

func TestCheckStack(t *testing.T) {
	all := newClient(t, newStack("ferrol", nil), newStack("other", nil), newStack("third", nil),
		newRelease(v1, "ferrol"), newRelease(v2, "ferrol"), newRelease("docker-ferrol-1-27-v3", "other"), newRelease("docker-ferrol-1-27-v4", "third"),
		newCluster("a", v1, ""), newCluster("b", v2, ""), newCluster("c", "docker-ferrol-1-27-v4", ""))
	for name, c := range map[string]struct {
		reader  client.Reader
		stack   string
		code    int32
		message string
	}{
		"clusters use its releases":         {all, "ferrol", 403, "releases of the stack are used by a/demo, b/demo; give them another class, or delete them"},
		"clusters use only those of others": {all, "other", 0, ""},
		"it has no releases":                {all, "new", 0, ""},
		"the releases cannot be read":       {failing(all, &csv1.ClusterStackReleaseList{}), "ferrol", 500, "broken"},
		"the stacks cannot be read": {failing(all, &csv1.ClusterStackList{}), "ferrol", 500,
			"looking for the stack of release docker-ferrol-1-27-v1: broken"},
		"the clusters cannot be read": {failing(all, &clusterv1.ClusterList{}), "ferrol", 500, "looking for clusters of class s/docker-ferrol-1-27-v1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			checkResponse(t, checkStack(c.reader)(t.Context(), request(t, "s", c.stack, newStack(c.stack, nil))), c.code, c.message)
		})
	}
	bad := request(t, "s", "other", newStack("other", nil))
	bad.OldObject.Raw = []byte(`{"metadata":{"name":"other","uid":"other"},"spec":"text"}`)
	if got := checkStack(all)(t.Context(), bad); !got.Allowed {
		t.Errorf("one that cannot be read cannot be deleted: %+v", got)
	}
	bad.OldObject.Raw = []byte("{")
	if got := checkStack(all)(t.Context(), bad); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("%+v", got)
	}
}

func noUnreadable() []unreadable.Object { return nil }

func TestCheckNamespace(t *testing.T) {
	all := newClient(t, newRelease(v1, "ferrol"), newRelease(v2, "ferrol"), newCluster("a", v1, ""), newCluster("s", v2, ""))
	own := newClient(t, newRelease(v2, "ferrol"), newCluster("s", v2, ""))
	kept := newWorkload("demo")
	kept.Spec.DeletionProtection = ptr.To(true)
	free := newClient(t, newWorkload("demo"))
	for name, c := range map[string]struct {
		reader    client.Reader
		namespace string
		code      int32
		message   string
	}{
		"clusters of others use its releases": {all, "s", 403, "releases of this namespace are used by a/demo; give them another class, or delete them"},
		"only its own clusters use them":      {own, "s", 0, ""},
		"it has no releases":                  {all, "a", 0, ""},
		"a cluster of it is protected": {newClient(t, kept), "s", 403,
			"cluster demo of this namespace is protected from deletion; set its spec.deletionProtection to false first"},
		"that of another is":            {newClient(t, kept), "a", 0, ""},
		"no cluster of it is protected": {free, "s", 0, ""},
		"its clusters cannot be read":   {failing(free, &v1alpha1.WorkloadClusterList{}), "s", 500, "broken"},
		"the releases cannot be read":   {failing(all, &csv1.ClusterStackReleaseList{}), "s", 500, "broken"},
		"the clusters cannot be read":   {failing(all, &clusterv1.ClusterList{}), "s", 500, "looking for clusters of class s/docker-ferrol-1-27-v1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			checkResponse(t, checkNamespace(c.reader, noUnreadable, nil)(t.Context(), request(t, c.namespace, c.namespace, &corev1.Namespace{})), c.code, c.message)
		})
	}
	unreadableOne := func() []unreadable.Object {
		return []unreadable.Object{{Kind: v1alpha1.GroupVersion.WithKind("WorkloadCluster"), Namespace: "s", Name: "demo", Problem: "spec holds text"}}
	}
	checkResponse(t, checkNamespace(free, unreadableOne, nil)(t.Context(), request(t, "s", "s", &corev1.Namespace{})), 403,
		"cluster demo of this namespace may be protected from deletion, but cannot be read: spec holds text; repair it first")
	checkResponse(t, checkNamespace(free, unreadableOne, nil)(t.Context(), request(t, "a", "a", &corev1.Namespace{})), 0, "")
}

// Parts of a protected cluster are not deleted. Who is asked about is tried on a plane, in test/provider.
func TestCheckProtected(t *testing.T) {
	kept, ending := newWorkload("demo"), newWorkload("ending")
	kept.Spec.DeletionProtection, ending.Spec.DeletionProtection = ptr.To(true), ptr.To(true)
	ending.Finalizers, ending.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: metav1.Now().Time}
	there := newClient(t, kept, ending, newWorkload("free"))
	const denied = "Machine m is a part of cluster demo, which is protected from deletion; set spec.deletionProtection of WorkloadCluster demo to false first"
	for name, c := range map[string]struct {
		reader  client.Reader
		labels  map[string]string
		code    int32
		message string
	}{
		"a machine of a protected cluster": {there, map[string]string{clusterv1.ClusterNameLabel: "demo"}, 403, denied},
		"one with the label of its own":    {there, map[string]string{clusterv1.ClusterNameLabel: "other", v1alpha1.WorkloadClusterLabel: "demo"}, 403, denied},
		"of one that is being deleted":     {there, map[string]string{clusterv1.ClusterNameLabel: "ending"}, 0, ""},
		"of one that is not protected":     {there, map[string]string{clusterv1.ClusterNameLabel: "free"}, 0, ""},
		"of one that is none of ours":      {there, map[string]string{clusterv1.ClusterNameLabel: "bare"}, 0, ""},
		"it cannot be read":                {failing(there, &v1alpha1.WorkloadCluster{}), map[string]string{clusterv1.ClusterNameLabel: "demo"}, 500, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "m", Labels: c.labels}}
			req := request(t, "s", "m", m)
			req.Kind.Kind = "Machine"
			checkResponse(t, checkProtected(c.reader)(t.Context(), req), c.code, c.message)
		})
	}
}

func TestValidatingWebhooks(t *testing.T) {
	type asked struct {
		Path, Group, Version, Resource string
		Operations                     []admissionv1.OperationType
		Conditions                     int
	}
	want := map[string]asked{
		"cluster.clusterstack.x-k8s.io": {clusterPath, "cluster.x-k8s.io", "v1beta2", "clusters", []admissionv1.OperationType{"CREATE", "UPDATE"}, 2},
		"release.clusterstack.x-k8s.io": {releasePath, "clusterstack.x-k8s.io", "v1alpha1", "clusterstackreleases", []admissionv1.OperationType{"DELETE"}, 1},
		"stack.clusterstack.x-k8s.io":   {stackPath, "clusterstack.x-k8s.io", "v1alpha1", "clusterstacks", []admissionv1.OperationType{"DELETE"}, 1},

		"namespace.clusterstack.x-k8s.io": {namespacePath, "", "v1", "namespaces", []admissionv1.OperationType{"DELETE"}, 0},

		"protected.workloadcluster.polder.dev": {protectedPath, "*", "*", "*", []admissionv1.OperationType{"DELETE"}, 3},

		"validate.workloadcluster.polder.dev": {validateWorkloadPath, "polder.dev", "v1alpha1", "workloadclusters",
			[]admissionv1.OperationType{"CREATE", "UPDATE", "DELETE"}, 1},

		"validate.tenant.polder.dev": {validateTenantPath, "polder.dev", "v1alpha1", "tenants",
			[]admissionv1.OperationType{"CREATE", "UPDATE", "DELETE"}, 0},

		"validate.kubeconfigrequest.polder.dev": {validateKubeconfigPath, "polder.dev", "v1alpha1", "kubeconfigrequests",
			[]admissionv1.OperationType{"CREATE", "DELETE"}, 1},
	}
	w := validatingWebhooks("https://127.0.0.1:1", []byte("authority"))
	got := map[string]asked{}
	for _, h := range w.Webhooks {
		rule := h.Rules[0]
		got[h.Name] = asked{
			strings.TrimPrefix(*h.ClientConfig.URL, "https://127.0.0.1:1"), rule.APIGroups[0], rule.APIVersions[0], rule.Resources[0], rule.Operations,
			len(h.MatchConditions),
		}
		if *h.FailurePolicy != admissionv1.Fail || *h.MatchPolicy != admissionv1.Equivalent || *h.SideEffects != admissionv1.SideEffectClassNone ||
			(*rule.Scope == admissionv1.NamespacedScope) == slices.Contains([]string{"namespaces", "tenants"}, rule.Resources[0]) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		if string(h.ClientConfig.CABundle) != "authority" || *h.TimeoutSeconds != 10 || !slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) ||
			len(h.Rules) != 1 {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
	if d := cmp.Diff(want, got); d != "" || w.Name != "polder-operator" {
		t.Error(w.Name, d)
	}
}

// Nobody is asked about deletions that end a move; all else is asked about as ever.
func TestMovedObjectsMayGo(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("request", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	conditions := exceptMoved(admissionv1.ValidatingWebhook{}).MatchConditions
	ast, issues := env.Compile(conditions[len(conditions)-1].Expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	p, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	of := func(annotations map[string]any) any {
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}
	}
	moved := of(map[string]any{"clusterctl.cluster.x-k8s.io/delete-for-move": ""})
	for name, c := range map[string]struct {
		operation string
		old       any
		asked     bool
	}{
		"it was moved":            {"DELETE", moved, false},
		"it was not":              {"DELETE", of(map[string]any{"a": "b"}), true},
		"it has no annotations":   {"DELETE", map[string]any{"metadata": map[string]any{}}, true},
		"nobody knows the old":    {"DELETE", nil, true},
		"it is changed meanwhile": {"UPDATE", moved, true},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := p.Eval(map[string]any{"request": map[string]any{"operation": c.operation}, "oldObject": c.old})
			if err != nil || out.Value() != c.asked {
				t.Errorf("%v, %v", out, err)
			}
		})
	}
}

// Of all writes to Clusters, only those that change class or version are asked about.
func TestMatchConditions(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	var programs []cel.Program
	for _, m := range validatingWebhooks("", nil).Webhooks[0].MatchConditions {
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
	of := func(namespace, class, version string) any {
		ref := map[string]any{"name": class}
		if namespace != "" {
			ref["namespace"] = namespace
		}
		return map[string]any{"spec": map[string]any{"topology": map[string]any{"classRef": ref, "version": version}, "paused": false}}
	}
	plain := map[string]any{"spec": map[string]any{"paused": true}}
	more := of("", "k", "v1.27.3")
	more.(map[string]any)["spec"].(map[string]any)["paused"] = true
	for name, c := range map[string]struct {
		old, object any
		want        bool
	}{
		"a new cluster with a class":    {nil, of("", "k", "v1.27.3"), true},
		"a new cluster without a class": {nil, plain, false},
		"a new cluster without a spec":  {nil, map[string]any{}, false},
		"something else was changed":    {of("", "k", "v1.27.3"), more, false},
		"another class":                 {of("", "k", "v1.27.3"), of("", "l", "v1.27.3"), true},
		"a class of another namespace":  {of("", "k", "v1.27.3"), of("s", "k", "v1.27.3"), true},
		"another version":               {of("", "k", "v1.27.3"), of("", "k", "v1.27.4"), true},
		"it had no class before":        {plain, of("", "k", "v1.27.3"), true},
		"it had text for a topology":    {map[string]any{"spec": map[string]any{"topology": "text"}}, of("", "k", "v1.27.3"), true},
		"it had text for a spec":        {map[string]any{"spec": "text"}, of("", "k", "v1.27.3"), true},
		"it had no spec":                {map[string]any{}, of("", "k", "v1.27.3"), true},
		"it has no class any more":      {of("", "k", "v1.27.3"), plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := true
			for i, p := range programs { // the API server evaluates all; an error counts only if none is false
				out, _, err := p.Eval(map[string]any{"object": c.object, "oldObject": c.old})
				if err != nil {
					if got {
						t.Errorf("condition %d: %v", i, err)
					}
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
