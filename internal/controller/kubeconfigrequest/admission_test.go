package kubeconfigrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// judge answers reviews: it allows verbs, and keeps what it was asked.
type judge struct {
	allows map[string]bool
	denies bool // even if the verb is allowed
	fails  error
	asked  []authorizationv1.SubjectAccessReviewSpec
}

func (j *judge) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r := o.(*authorizationv1.SubjectAccessReview)
	j.asked = append(j.asked, r.Spec)
	r.Status.Allowed, r.Status.Denied = j.allows[r.Spec.ResourceAttributes.Verb], j.denies
	return j.fails
}

func asking(t *testing.T, o any, operation admissionv1.Operation) admission.Request {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "review", Namespace: space, Name: "mine", Operation: operation, Object: runtime.RawExtension{Raw: raw},
		UserInfo: authenticationv1.UserInfo{
			Username: requester, UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"some"}},
		},
	}}
}

func TestMutatingHandler(t *testing.T) {
	fill := MutatingHandler(admission.NewDecoder(scheme(t)))
	object := func(spec any) map[string]any {
		return map[string]any{"apiVersion": "polder.dev/v1alpha1", "kind": "KubeconfigRequest", "metadata": map[string]any{"name": "mine"}, "spec": spec}
	}
	for title, c := range map[string]struct {
		spec any
		want string // patches, as text
	}{
		"nothing written":     {map[string]any{"clusterName": name}, `[{add /spec/username alice@example.org}]`},
		"another is written":  {map[string]any{"username": "root"}, `[{replace /spec/username alice@example.org}]`},
		"the same is written": {map[string]any{"username": requester}, `[]`},
		"more than we know":   {map[string]any{"new": 1, "username": "root"}, `[{replace /spec/username alice@example.org}]`},
	} {
		t.Run(title, func(t *testing.T) {
			got := fill(t.Context(), asking(t, object(c.spec), admissionv1.Create))
			text := []string{}
			for _, p := range got.Patches {
				text = append(text, fmt.Sprintf("{%s %s %v}", p.Operation, p.Path, p.Value))
			}
			if d := cmp.Diff(c.want, fmt.Sprint(text)); d != "" || !got.Allowed {
				t.Errorf("allowed %v: %s", got.Allowed, d)
			}
		})
	}
	for _, spec := range []any{nil, "text"} {
		if got := fill(t.Context(), asking(t, object(spec), admissionv1.Create)); got.Allowed {
			t.Errorf("%v is taken as a spec", spec)
		}
	}
	if got := fill(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}); got.Allowed {
		t.Error("nothing is taken")
	}
	if got := fill(t.Context(), asking(t, object(map[string]any{"username": "bob"}), admissionv1.Update)); !got.Allowed || len(got.Patches) > 0 {
		t.Error("who asked is changed later")
	}
}

func TestValidatingHandler(t *testing.T) {
	both := map[string]bool{"get": true, "update": true, "list": true}
	viewer := func(o *v1alpha1.KubeconfigRequest) { o.Spec.Role = v1alpha1.RoleViewer }
	nowhere := func(o *v1alpha1.KubeconfigRequest) { o.Spec.ClusterName = "nowhere" }
	for title, c := range map[string]struct {
		change func(*v1alpha1.KubeconfigRequest)
		judge  judge
		want   string // of the refusal; empty if it is allowed
	}{
		"an admin": {func(*v1alpha1.KubeconfigRequest) {}, judge{allows: map[string]bool{"update": true}}, ""},
		"a viewer": {viewer, judge{allows: map[string]bool{"get": true}}, ""},
		"an admin who may look": {func(*v1alpha1.KubeconfigRequest) {}, judge{allows: map[string]bool{"get": true}},
			"alice@example.org may not be admin of cluster prod: that needs the right to update workloadclusters.polder.dev of that name in namespace team"},
		"a viewer who may change": {viewer, judge{allows: map[string]bool{"update": true}}, "needs the right to get workloadclusters"},
		"denied though allowed":   {viewer, judge{allows: both, denies: true}, "needs the right to get"},
		"a judge who fails": {viewer, judge{allows: both, fails: errors.New("broken")},
			"asking whether alice@example.org may get workloadclusters: broken"},
		"in another's name": {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "bob" }, judge{allows: both},
			`spec.username is "bob", but "alice@example.org" asks`},
		"a bad signing request": {func(o *v1alpha1.KubeconfigRequest) { o.Spec.CertificateRequest = "x" }, judge{allows: both},
			"spec.certificateRequest: it must be one block"},
		"no such cluster": {nowhere, judge{allows: both},
			"spec.clusterName: there is no WorkloadCluster nowhere in namespace team; there are dev, prod"},
		"no such cluster, of one who may not list": {nowhere, judge{allows: map[string]bool{"update": true}},
			"there is no WorkloadCluster nowhere in namespace team$"},
		"no such cluster, of one who may nothing": {nowhere, judge{}, "may not be admin of cluster nowhere"},
		"the name of a cluster":                   {func(o *v1alpha1.KubeconfigRequest) { o.Name = "dev" }, judge{allows: both}, ""},
		"a name to be made":                       {func(o *v1alpha1.KubeconfigRequest) { o.Name, o.GenerateName = "", "dev-" }, judge{allows: both}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			dev := newWorkloadCluster()
			dev.Name = "dev"
			other := newWorkloadCluster()
			other.Namespace, other.Name = "others", "hidden"
			live := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(newWorkloadCluster(), dev, other).Build()
			got := ValidatingHandler(live, &c.judge, admission.NewDecoder(scheme(t)))(t.Context(), asking(t, newRequest(c.change), admissionv1.Create))
			if got.Allowed != (c.want == "") {
				t.Fatalf("allowed %v: %v", got.Allowed, got.Result)
			}
			if want, whole := strings.CutSuffix(c.want, "$"); !strings.Contains(got.Result.Message, want) || whole && !strings.HasSuffix(got.Result.Message, want) {
				t.Errorf("it says %s", got.Result.Message)
			}
		})
	}
}

func TestValidatingHandlerReviewsTheRequester(t *testing.T) {
	j := &judge{allows: map[string]bool{"update": true}}
	live := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(newWorkloadCluster()).Build()
	o := newRequest()
	o.Namespace = "another" // the API server would refuse it, and it is not read
	if got := ValidatingHandler(live, j, admission.NewDecoder(scheme(t)))(t.Context(), asking(t, o, admissionv1.Create)); !got.Allowed {
		t.Fatal(got.Result.Message)
	}
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: requester, UID: "7", Groups: []string{"team"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"some"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: space, Verb: "update", Group: "polder.dev", Version: "v1alpha1", Resource: "workloadclusters", Name: name,
		},
	}}
	if d := cmp.Diff(want, j.asked); d != "" {
		t.Error(d)
	}
}

func TestValidatingHandlerIgnoresOtherOperations(t *testing.T) {
	j := &judge{}
	check := ValidatingHandler(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), j, admission.NewDecoder(scheme(t)))
	if got := check(t.Context(), asking(t, newRequest(), admissionv1.Update)); !got.Allowed || len(j.asked) > 0 {
		t.Error("an update is checked")
	}
	if got := check(t.Context(), asking(t, "text", admissionv1.Create)); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("what cannot be read: %v", got.Result)
	}
}

// Who may see clusters may delete requests, but not those of others.
func TestValidatingHandlerOfDeletion(t *testing.T) {
	bobs := func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "bob" }
	deletes := map[string]bool{"delete": true}
	for title, c := range map[string]struct {
		old   any
		judge judge
		want  string // of the refusal; empty if it is allowed
	}{
		"one's own": {newRequest(), judge{}, ""},
		"another's": {newRequest(bobs), judge{allows: map[string]bool{"get": true, "update": true}},
			`the request is that of "bob", and goes when its time is over; to delete it now, alice@example.org needs the right to delete workloadclusters.polder.dev named "prod" in namespace team`},
		"of a cluster that is one's": {newRequest(bobs), judge{allows: deletes}, ""},
		"of nobody":                  {newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "" }), judge{}, `that of ""`},
		"what cannot be read":        {"text", judge{}, `that of ""`},
		"what cannot be read, of one who may delete all": {"text", judge{allows: deletes}, ""},
		"a judge who fails": {newRequest(bobs), judge{allows: deletes, fails: errors.New("broken")},
			"asking whether alice@example.org may delete workloadclusters: broken"},
	} {
		t.Run(title, func(t *testing.T) {
			req := asking(t, c.old, admissionv1.Delete)
			// As when a whole collection is deleted.
			req.OldObject, req.Object, req.Name = req.Object, runtime.RawExtension{}, ""
			got := ValidatingHandler(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), &c.judge, admission.NewDecoder(scheme(t)))(t.Context(), req)
			if got.Allowed != (c.want == "") || !strings.Contains(got.Result.Message, c.want) {
				t.Errorf("allowed %v: %v", got.Allowed, got.Result)
			}
		})
	}
}

func TestValidatingHandlerWithoutAPlane(t *testing.T) {
	broken := errors.New("broken")
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	})
	got := ValidatingHandler(live, &judge{allows: map[string]bool{"update": true}}, admission.NewDecoder(scheme(t)))(t.Context(),
		asking(t, newRequest(), admissionv1.Create))
	if got.Allowed || got.Result.Code != http.StatusInternalServerError {
		t.Errorf("allowed %v: %v", got.Allowed, got.Result)
	}
}

func TestDescribeClusters(t *testing.T) {
	var all []v1alpha1.WorkloadCluster
	for i := range 11 {
		c := newWorkloadCluster()
		c.Name = fmt.Sprintf("c%02d", 10-i)
		all = append(all, *c)
	}
	for want, l := range map[string][]v1alpha1.WorkloadCluster{
		"there are none at all yet": nil,
		"there are c10":             all[:1],
		"there are c01, c02, c03, c04, c05, c06, c07, c08, c09, c10":          all[:10],
		"there are c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and more": all,
	} {
		if got := describeClusters(l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Requests that wait are bounded for each namespace; those that were answered do not count.
func TestPendingLimit(t *testing.T) {
	for title, c := range map[string]struct {
		pending, answered, elsewhere int
		want                         string
	}{
		"some wait":           {maxPendingRequests - 1, 0, 0, ""},
		"many were answered":  {1, 3 * maxPendingRequests, 0, ""},
		"many wait elsewhere": {0, 0, maxPendingRequests, ""},
		"many wait":           {maxPendingRequests, 1, 1, "20 requests of namespace team wait for their answer already"},
	} {
		t.Run(title, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(newWorkloadCluster())
			add := func(n int, namespace string, change func(*v1alpha1.KubeconfigRequest)) {
				for i := range n {
					b.WithObjects(newRequest(change, func(o *v1alpha1.KubeconfigRequest) {
						o.Namespace, o.Name = namespace, fmt.Sprintf("r%d-%v", i, isAnswered(o))
					}))
				}
			}
			add(c.pending, "team", func(*v1alpha1.KubeconfigRequest) {})
			add(c.elsewhere, "others", func(*v1alpha1.KubeconfigRequest) {})
			add(c.answered, "team", func(o *v1alpha1.KubeconfigRequest) {
				o.Status.ExpirationTime, o.Status.SecretName = &metav1.Time{Time: metav1.Now().Time}, "s"
			})
			got := ValidatingHandler(b.Build(), &judge{allows: map[string]bool{"update": true}}, admission.NewDecoder(scheme(t)))(t.Context(),
				asking(t, newRequest(), admissionv1.Create))
			if got.Allowed != (c.want == "") || !strings.Contains(got.Result.Message, c.want) {
				t.Errorf("allowed %v: %v", got.Allowed, got.Result)
			}
		})
	}
}
