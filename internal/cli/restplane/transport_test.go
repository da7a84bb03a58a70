package restplane

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

var (
	clusterResource = v1alpha1.GroupVersion.WithResource("workloadclusters")
	tenantResource  = v1alpha1.GroupVersion.WithResource("tenants")
)

const acmePath = "/v1/tenants/acme"

func clustersOf(c dynamic.Interface) dynamic.ResourceInterface {
	return c.Resource(clusterResource).Namespace("acme")
}

func TestIsURL(t *testing.T) {
	for text, want := range map[string]bool{
		"https://polder.example.org/v1": true, "https://polder.example.org:8443/v1/": true, "https://polder.example.org/api/v1": true,
		"https://polder.example.org": false, "http://polder.example.org/v1": false, "https://a@polder.example.org/v1": false,
		"https://polder.example.org/v1?x": false, "https://polder.example.org/v1beta1": false, "/v1": false, "https:///v1": false,
	} {
		if got := IsURL(text); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	c := &rest.Config{Host: "https://polder.example.org:7443"}
	if Use(c); c.WrapTransport != nil {
		t.Error("a plane's own API is asked through the REST API")
	}
}

func TestReadClusters(t *testing.T) {
	f := newFakeAPI(t, map[string]reply{
		"GET " + acmePath + "/clusters/one":                         {200, cluster("one", "u1", "1"), ""},
		"GET " + acmePath + "/clusters?pageSize=500&pageToken=":     {200, `{"items":[` + cluster("one", "u1", "1") + `],"nextPageToken":"next"}`, ""},
		"GET " + acmePath + "/clusters?pageSize=500&pageToken=next": {200, `{"items":[` + cluster("two", "u2", "2") + `]}`, ""},
		"GET " + acmePath: {200, `{"metadata":{"name":"acme"}}`, ""},
		"GET /v1/me":      {200, `{"username":"ann","groups":["g"]}`, ""},
	})
	c := f.client(t)
	u, err := clustersOf(c).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || u.GetNamespace() != "acme" || u.GetGeneration() != 9007199254740993 {
		t.Errorf("%v, %v", u, err)
	}
	names := func(o metav1.ListOptions) (out []string) {
		l, err := clustersOf(c).List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range l.Items {
			out = append(out, u.GetNamespace()+"/"+u.GetName())
		}
		return out
	}
	for selector, want := range map[string][]string{"": {"acme/one", "acme/two"}, "metadata.name=one": {"acme/one"}, "metadata.name=none": nil, "metadata.name=No": nil} {
		if diff := cmp.Diff(want, names(metav1.ListOptions{FieldSelector: selector})); diff != "" {
			t.Errorf("with %q: %s", selector, diff)
		}
	}
	for _, name := range []string{"none", "No"} {
		if _, err = clustersOf(c).Get(t.Context(), name, metav1.GetOptions{}); !apierror.IsObjectNotFound(err, "workloadclusters", name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, foreign := range []string{"other", "No_Tenant"} {
		_, err = c.Resource(clusterResource).Namespace(foreign).List(t.Context(), metav1.ListOptions{})
		m, ok := apierror.ReadMissingRight(statusOf(err))
		if want := (apierror.MissingRight{User: "ann", Verb: "list", Resource: "workloadclusters", Namespace: foreign}); !ok || m != want {
			t.Errorf("of another tenant: %+v, %v", m, err)
		}
	}
}

func statusOf(err error) metav1.Status {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		return s.Status()
	}
	return metav1.Status{}
}

// TestProblems makes errors of Kubernetes of problems, so that commands say the same.
func TestProblems(t *testing.T) {
	const create = "POST " + acmePath + "/clusters"
	oneCause := []apierror.Cause{{Field: "spec.stack.name", Message: "there is no such stack"}}
	for name, tt := range map[string]struct {
		answer reply
		is     func(error) bool
		words  string
		causes []apierror.Cause
	}{
		"a field":           {problem(422, "Invalid", "it is wrong", "spec.stack.name", "there is no such stack"), apierrors.IsInvalid, "it is wrong", oneCause},
		"without reason":    {problem(422, "", "it is wrong"), apierrors.IsInvalid, "it is wrong", nil},
		"bad request":       {problem(400, "", "no object"), apierrors.IsBadRequest, "no object", nil},
		"there already":     {problem(409, "AlreadyExists", "there is one"), apierrors.IsAlreadyExists, "there is one", nil},
		"changed meanwhile": {problem(412, "", "read it again"), apierrors.IsConflict, "read it again", nil},
		"quota":             {problem(403, "Forbidden", "exceeded quota: polder-tenant"), apierrors.IsForbidden, "exceeded quota: polder-tenant", nil},
		"no right":          {problem(403, "Forbidden", "oidc:ann may not update workloadclusters; an admin of the tenant can give you another role"), apierrors.IsForbidden, `User "oidc:ann" cannot create resource "workloadclusters" in API group "polder.dev" in the namespace "acme"`, nil},
		"not known":         {problem(401, "", "wrong token"), apierrors.IsUnauthorized, "", nil},
		"unavailable":       {problem(503, "", "later"), apierrors.IsServiceUnavailable, "later", nil},
		"a page":            {reply{code: 404, body: "404 page not found"}, apierror.IsUnexpectedResponse, "", nil},
		"another place":     {reply{code: 307, body: "https://elsewhere.example.org/v1"}, apierror.IsUnexpectedResponse, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t, map[string]reply{create: tt.answer, create + "?dryRun=false": tt.answer})
			_, err := clustersOf(f.client(t)).Create(t.Context(), newObject("one"), metav1.CreateOptions{})
			if !tt.is(err) || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(tt.causes, apierror.Causes(statusOf(err))); diff != "" && tt.words != "" {
				t.Error(diff)
			}
			if len(f.requests) != 1 {
				t.Errorf("%q", f.requests)
			}
		})
	}
}

func newObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "polder.dev/v1alpha1", "kind": "WorkloadCluster", "metadata": object{"name": name, "namespace": "acme"},
	}}
}

func TestChangeClusters(t *testing.T) {
	const one = acmePath + "/clusters/one"
	was := strings.Replace(cluster("one", "u1", "1"), `"uid"`, `"annotations":{"polder.dev/kept":"x","mine":"y"},"uid"`, 1)
	f := newFakeAPI(t, map[string]reply{
		"GET " + one: {200, was, ""}, "PUT " + one + "?dryRun=false": {200, cluster("one", "u1", "2"), ""},
		"PATCH " + one + "?dryRun=false":               {200, cluster("one", "u1", "3"), ""},
		"POST " + acmePath + "/clusters?dryRun=true":   {201, cluster("two", "u2", "1"), ""},
		"DELETE " + one + "?uid=u1&dryRun=false":       {202, "", ""},
		"GET " + acmePath:                              {200, `{}`, ""},
		"PUT " + acmePath + "/clusters/x?dryRun=false": {201, cluster("x", "u3", "1"), ""},
	})
	c := clustersOf(f.client(t))
	force := true
	apply := func(name string) {
		t.Helper()
		b, _ := newObject(name).MarshalJSON()
		if u, err := c.Patch(t.Context(), name, types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: "polder", Force: &force}); err != nil || u.GetNamespace() != "acme" {
			t.Fatalf("%v, %v in %q", u, err, f.requests)
		}
	}
	apply("x")
	apply("one")
	want := object{"apiVersion": "polder.dev/v1alpha1", "kind": "WorkloadCluster", "metadata": object{"name": "one", "annotations": object{"polder.dev/kept": "x"}}}
	if diff := cmp.Diff(want, f.body(t, "PUT "+one+"?dryRun=false")); diff != "" {
		t.Errorf("applied (-want +got): %s", diff)
	}
	patch := func(text, body, tag string) error {
		t.Helper()
		_, err := c.Patch(t.Context(), "one", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		key := "PATCH " + one + "?dryRun=false"
		if err == nil && (f.bodies[key] != body || f.headers[key].Get("If-Match") != tag || f.headers[key].Get("Content-Type") != "application/merge-patch+json") {
			t.Errorf("sent %s with %v", f.bodies[key], f.headers[key])
		}
		return err
	}
	if err := patch(`{"metadata":{"resourceVersion":"7","uid":"u1"},"spec":{"a":null}}`, `{"spec":{"a":null}}`, `"7"`); err != nil {
		t.Error(err)
	}
	if err := patch(`{"metadata":{"uid":"u1","annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `"1"`); err != nil {
		t.Error(err)
	}
	if err := patch(`{"metadata":{"uid":"u9"}}`, "", ""); !apierrors.IsBadRequest(err) {
		t.Errorf("of another cluster: %v", err)
	}
	if _, err := c.Patch(t.Context(), "one", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{}); statusOf(err).Reason != ReasonNoCounterpart {
		t.Errorf("a JSON patch: %v", err)
	}
	if _, err := c.Create(t.Context(), newObject("two"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u1")}); err != nil {
		t.Errorf("%v in %q", err, f.requests)
	}
}

// TestNoCounterpart: what the REST API does not have is said, and never a 404.
func TestNoCounterpart(t *testing.T) {
	f := newFakeAPI(t, map[string]reply{"GET /v1/me": {200, `{"username":"ann","groups":[]}`, ""}})
	c := f.client(t)
	_, all := c.Resource(clusterResource).List(t.Context(), metav1.ListOptions{})
	_, pods := c.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("acme").List(t.Context(), metav1.ListOptions{})
	_, tenant := c.Resource(tenantResource).Create(t.Context(), newObject("one"), metav1.CreateOptions{})
	err := clustersOf(c).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	for _, err := range []error{all, pods, tenant, err} {
		if s := statusOf(err); s.Reason != ReasonNoCounterpart || s.Code != http.StatusNotImplemented || s.Message == "" {
			t.Errorf("%v", err)
		}
	}
	_, secret := c.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("acme").Get(t.Context(), "x", metav1.GetOptions{})
	if !apierrors.IsForbidden(secret) {
		t.Errorf("a Secret: %v", secret)
	}
	if slices.ContainsFunc(f.requests, func(r string) bool { return r != "GET /v1/me" }) {
		t.Errorf("%q", f.requests)
	}
}

// TestToken: a request without a token is not sent, and a token is not sent elsewhere.
func TestToken(t *testing.T) {
	elsewhere := newFakeAPI(t, nil)
	f := newFakeAPI(t, map[string]reply{"GET /v1/me": {302, elsewhere.URL + "/v1/me", ""}})
	config := f.config()
	c := f.client(t)
	_, err := c.Resource(tenantResource).Create(t.Context(), newObject("x"), metav1.CreateOptions{})
	if err == nil || len(elsewhere.requests) > 0 {
		t.Errorf("%v; %q", err, elsewhere.requests)
	}
	_, err = c.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("a").Get(t.Context(), "x", metav1.GetOptions{})
	if !apierror.IsUnexpectedResponse(err) || len(elsewhere.requests) > 0 {
		t.Errorf("%v; %q", err, elsewhere.requests)
	}
	config.BearerToken = ""
	without, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f.requests = nil
	if _, err := clustersOf(without).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "polder login") || len(f.requests) > 0 {
		t.Errorf("%v; %q", err, f.requests)
	}
}

func TestKubeconfigRequests(t *testing.T) {
	const key = "POST " + acmePath + "/clusters/one/kubeconfig"
	f := newFakeAPI(t, map[string]reply{key: problem(409, "", "cluster one has no API yet: it is being made"), "GET " + acmePath: {200, `{}`, ""}})
	requests := f.client(t).Resource(v1alpha1.GroupVersion.WithResource("kubeconfigrequests")).Namespace("acme")
	newRequest := func(cluster string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: object{
			"apiVersion": "polder.dev/v1alpha1", "kind": "KubeconfigRequest", "metadata": object{"generateName": "one-"},
			"spec": object{"clusterName": cluster, "role": "admin", "certificateRequest": "csr", "expirationSeconds": int64(600)},
		}}
	}
	ready := func(u *unstructured.Unstructured) string {
		all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return all[0].(object)["status"].(string) + " " + all[0].(object)["reason"].(string)
	}
	made, err := requests.Create(t.Context(), newRequest("one"), metav1.CreateOptions{})
	if err != nil || ready(made) != "False ClusterNotReady" {
		t.Fatalf("%v, %v", made, err)
	}
	if got := f.body(t, key); got["certificateRequest"] != "csr" || got["role"] != "admin" || got["expirationSeconds"] != 600.0 {
		t.Errorf("%v", got)
	}
	byName := metav1.ListOptions{FieldSelector: "metadata.name=" + made.GetName()}
	if l, err := requests.List(t.Context(), byName); err != nil || len(l.Items) != 1 || l.Items[0].GetNamespace() != "acme" {
		t.Errorf("%v, %v", l, err)
	}
	f.mu.Lock()
	f.answers[key] = reply{201, `{"certificate":"c","certificateAuthority":"ca","endpoint":"https://x","expirationTime":"2026-01-01T00:00:00Z","kubeconfig":""}`, ""}
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := requests.Watch(ctx, byName)
	if err != nil {
		t.Fatal(err)
	}
	granted := (<-w.ResultChan()).Object.(*unstructured.Unstructured)
	w.Stop()
	if endpoint, _, _ := unstructured.NestedString(granted.Object, "status", "endpoint"); ready(granted) != "True Ready" || endpoint != "https://x" {
		t.Errorf("%v", granted)
	}
	if err := requests.Delete(t.Context(), made.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if missing, err := requests.Create(t.Context(), newRequest("none"), metav1.CreateOptions{}); !apierror.IsObjectNotFound(err, "workloadclusters", "none") {
		t.Errorf("%v, %v", missing, err)
	}
}

func TestOffers(t *testing.T) {
	f := newFakeAPI(t, map[string]reply{
		"GET /v1/providers?pageSize=500&pageToken=":      {200, `{"items":[{"apiVersion":"polder.dev/v1alpha1","kind":"Provider","metadata":{"name":"local"}}]}`, ""},
		"GET /v1/stacks?tenant=&pageSize=500&pageToken=": {200, `{"items":[{"kind":"ClusterStack","apiVersion":"clusterstack.x-k8s.io/v1alpha1","metadata":{"name":"s"}}]}`, ""},
		"GET /v1/stacks/scs/schema?tenant=&kubernetes=1.36": {200, `{"items":[{"provider":"local","stack":"scs","release":"local-scs-1-36-v1","kubernetes":"v1.36.3",
			"parameters":[{"name":"p","type":"string","required":true,"replaces":"None"}]}]}`, ""},
	})
	c := f.client(t)
	providers := c.Resource(v1alpha1.GroupVersion.WithResource("providers"))
	if _, err := providers.Get(t.Context(), "local", metav1.GetOptions{}); err != nil {
		t.Errorf("%v in %q", err, f.requests)
	}
	if _, err := providers.Get(t.Context(), "none", metav1.GetOptions{}); !apierror.IsObjectNotFound(err, "providers", "none") {
		t.Error(err)
	}
	l, err := c.Resource(csv1.GroupVersion.WithResource("clusterstacks")).Namespace(v1alpha1.CatalogueNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(l.Items) != 1 || l.Items[0].GetNamespace() != v1alpha1.CatalogueNamespace {
		t.Errorf("%v, %v in %q", l, err, f.requests)
	}
	releases := c.Resource(csv1.GroupVersion.WithResource("clusterstackreleases")).Namespace(v1alpha1.CatalogueNamespace)
	u, err := releases.Get(t.Context(), "local-scs-1-36-v1", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("%v in %q", err, f.requests)
	}
	if all, _, _ := unstructured.NestedSlice(u.Object, "status", "parameters"); len(all) != 1 || all[0].(object)["required"] != true {
		t.Errorf("%v", u)
	}
	if _, err := releases.Get(t.Context(), "local-scs-1-36-v2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestTenants(t *testing.T) {
	const tenant = `{"apiVersion":"polder.dev/v1alpha1","kind":"Tenant","metadata":{"name":"acme","resourceVersion":"5"},
		"spec":{"namespace":"acme-ns","members":[{"kind":"User","name":"ann","role":"admin"}],"robots":[{"name":"old","role":"viewer"}]}}`
	f := newFakeAPI(t, map[string]reply{
		"GET " + acmePath:                        {200, tenant, ""},
		"PUT " + acmePath + "/members":           {200, `{"items":[]}`, ""},
		"PUT " + acmePath + "/robots/ci":         {200, `{"name":"ci","role":"editor"}`, ""},
		"DELETE " + acmePath + "/robots/old":     {204, "", ""},
		"POST " + acmePath + "/robots/ci/tokens": {201, `{"token":"t","expirationTime":"2026-01-01T00:00:00Z"}`, ""},
		"GET /v1/me":                             {200, `{"username":"ann","groups":["g"]}`, ""},
		"GET " + acmePath + "/quota":             {200, `{"items":[{"name":"clusters","limit":"20","used":"2"},{"name":"memory","limit":"1Gi","used":"0"}]}`, ""},
	})
	c := f.client(t)
	u, err := c.Resource(tenantResource).Get(t.Context(), "acme", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Its namespace has another name, and is its own since it was read.
	q, err := c.Resource(corev1.SchemeGroupVersion.WithResource("resourcequotas")).Namespace("acme-ns").Get(t.Context(), v1alpha1.TenantQuotaName, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("%v in %q", err, f.requests)
	}
	used, _, _ := unstructured.NestedStringMap(q.Object, "status", "used")
	if diff := cmp.Diff(map[string]string{"count/workloadclusters.polder.dev": "2", "polder.dev/memory": "0"}, used); diff != "" {
		t.Error(diff)
	}
	set := func(field string, value any) { _ = unstructured.SetNestedField(u.Object, value, "spec", field) }
	set("members", []any{object{"kind": "Group", "name": "devs", "role": "editor"}})
	set("robots", []any{object{"name": "ci", "role": "editor"}})
	if _, err := c.Resource(tenantResource).Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("%v in %q", err, f.requests)
	}
	key := "PUT " + acmePath + "/members"
	if diff := cmp.Diff(object{"items": []any{object{"kind": "Group", "name": "devs", "role": "editor"}}}, f.body(t, key)); diff != "" || f.headers[key].Get("If-Match") != `"5"` {
		t.Errorf("%s %v", diff, f.headers[key])
	}
	for _, want := range []string{"PUT " + acmePath + "/robots/ci", "DELETE " + acmePath + "/robots/old"} {
		if !slices.Contains(f.requests, want) {
			t.Errorf("no %s in %q", want, f.requests)
		}
	}
	set("title", "x")
	if _, err := c.Resource(tenantResource).Update(t.Context(), u, metav1.UpdateOptions{}); statusOf(err).Reason != ReasonNoCounterpart {
		t.Errorf("another field: %v", err)
	}
	unstructured.RemoveNestedField(u.Object, "spec", "title")
	testTyped(t, f)
	u.SetResourceVersion("4")
	if _, err := c.Resource(tenantResource).Update(t.Context(), u, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
}

// testTyped asks as whoami and tenant robot do.
func testTyped(t *testing.T, f *fakeAPI) {
	t.Helper()
	k, err := kubernetes.NewForConfig(f.config())
	if err != nil {
		t.Fatal(err)
	}
	who, err := k.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username != "ann" || !slices.Equal(who.Status.UserInfo.Groups, []string{"g"}) {
		t.Errorf("%+v, %v", who, err)
	}
	seconds := int64(600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := k.CoreV1().ServiceAccounts("acme").CreateToken(t.Context(), "robot-ci", request, metav1.CreateOptions{})
	if err != nil || token.Status.Token != "t" || token.Status.ExpirationTimestamp.Year() != 2026 {
		t.Errorf("%+v, %v", token, err)
	}
	if got := f.body(t, "POST "+acmePath+"/robots/ci/tokens"); got["expirationSeconds"] != 600.0 {
		t.Errorf("%v", got)
	}
	if _, err := k.CoreV1().ServiceAccounts("acme").CreateToken(t.Context(), "default", request, metav1.CreateOptions{}); statusOf(err).Reason != ReasonNoCounterpart {
		t.Errorf("a token of no robot: %v", err)
	}
}

// TestListMachines gives commands the machines that the REST API tells of as those of Cluster API.
func TestListMachines(t *testing.T) {
	at := "GET " + acmePath + "/clusters/one/machines?pageSize=500&pageToken="
	f := newFakeAPI(t, map[string]reply{
		at:                {200, `{"items":[{"name":"cp","controlPlane":true,"phase":"Running","ready":true,"kubernetes":"v1.36.3","creationTimestamp":"2026-01-01T00:00:00Z"}],"nextPageToken":"x"}`, ""},
		at + "x":          {200, `{"items":[{"name":"w","pool":"p","phase":"Pending","node":"n","message":"wants a disk","creationTimestamp":"2026-01-01T00:00:00Z"}]}`, ""},
		"GET " + acmePath: {200, `{"metadata":{"name":"acme"}}`, ""},
		"GET /v1/me":      {200, `{"username":"ann"}`, ""},
	})
	machines := f.client(t).Resource(clusterv1.GroupVersion.WithResource("machines")).Namespace("acme")
	l, err := machines.List(t.Context(), metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel + "=one"})
	if err != nil || len(l.Items) != 2 {
		t.Fatalf("%v, %v", l, err)
	}
	var all []clusterv1.Machine
	for _, u := range l.Items {
		var m clusterv1.Machine
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	_, isControlPlane := all[0].Labels[clusterv1.MachineControlPlaneLabel]
	if all[0].Name != "cp" || !isControlPlane || all[0].Spec.Version != "v1.36.3" || !meta.IsStatusConditionTrue(all[0].Status.Conditions, "Ready") {
		t.Errorf("%+v", all[0])
	}
	c := meta.FindStatusCondition(all[1].Status.Conditions, "Ready")
	if c == nil || c.Status != metav1.ConditionFalse || c.Message != "wants a disk" || all[1].Status.NodeRef.Name != "n" ||
		all[1].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] != "p" || all[1].Status.Phase != "Pending" || all[1].Namespace != "acme" {
		t.Errorf("%+v", all[1])
	}
	if _, err := machines.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("those of all clusters: %v", err)
	}
}
