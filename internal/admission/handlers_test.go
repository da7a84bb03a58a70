package admission_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

func request(t *testing.T, operation admissionv1.Operation, o, old *v1alpha1.WorkloadCluster) ctrladmission.Request {
	t.Helper()
	encode := func(o *v1alpha1.WorkloadCluster) (out runtime.RawExtension) {
		if o == nil {
			return out
		}
		o = o.DeepCopy()
		o.Namespace = "" // only the request has it
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: b}
	}
	return ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Namespace: "a", Object: encode(o), OldObject: encode(old)}}
}

func TestMutate(t *testing.T) {
	bare := cluster(named(""), minor(""))
	two := newWorld().add(&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}})
	add := func(path, value string) jsonpatch.JsonPatchOperation {
		return jsonpatch.NewOperation("add", path, value)
	}
	const provider, version = "/spec/provider", "/spec/stack/kubernetesVersion"
	for name, c := range map[string]struct {
		world  *world
		object *v1alpha1.WorkloadCluster
		old    *v1alpha1.WorkloadCluster
		want   []jsonpatch.JsonPatchOperation
	}{
		"both are left out":   {newWorld(), bare, nil, []jsonpatch.JsonPatchOperation{add(provider, "local"), add(version, "1.36")}},
		"nothing is left out": {newWorld(), cluster(), nil, nil},
		"the newest minor": {newWorld().line("1.37", "v1.37.0"), bare, nil, []jsonpatch.JsonPatchOperation{
			add(provider, "local"), add(version, "1.37"),
		}},
		"an older minor is kept":                       {newWorld().line("1.37", "v1.37.0"), cluster(), nil, nil},
		"there are two providers, so nobody is chosen": {two, bare, nil, nil},
		"there are two, and one is named":              {two, cluster(minor("")), nil, []jsonpatch.JsonPatchOperation{add(version, "1.36")}},
		"the one that is named is not there":           {newWorld(), cluster(named("other"), minor("")), nil, nil},
		"no such stack":                                {newWorld(), cluster(minor(""), stack("other")), nil, nil},
		"no stack at all":                              {newWorld(), cluster(named(""), minor(""), stack("")), nil, nil},
		"left out again, they stay as they were": {newWorld().line("1.37", "v1.37.0"), bare, cluster(named("old"), minor("1.30")),
			[]jsonpatch.JsonPatchOperation{add(provider, "old"), add(version, "1.30")}},
		"changed, they are what they are changed to": {newWorld(), cluster(minor("1.37")), cluster(), nil},
		"they never were there":                      {newWorld(), bare, bare, nil},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admissionv1.Create
			if c.old != nil {
				operation = admissionv1.Update
			}
			got := c.world.checker(t).Mutate(t.Context(), request(t, operation, c.object, c.old))
			if d := cmp.Diff(c.want, got.Patches); d != "" || !got.Allowed {
				t.Error(d, got)
			}
		})
	}
	t.Run("it cannot be found out", func(t *testing.T) {
		w := newWorld()
		w.failing = &v1alpha1.ProviderList{}
		got := w.checker(t).Mutate(t.Context(), request(t, admissionv1.Create, bare, nil))
		if got.Allowed || got.Result.Code != http.StatusInternalServerError {
			t.Errorf("%+v", got)
		}
	})
}

func TestValidate(t *testing.T) {
	guardedOne := cluster(func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) })
	unknown := newWorld()
	unknown.failing = &v1alpha1.ProviderList{}
	for name, c := range map[string]struct {
		world     *world
		operation admissionv1.Operation
		o, old    *v1alpha1.WorkloadCluster
		code      int32
		message   string
	}{
		"a sound one": {newWorld(), admissionv1.Create, cluster(), nil, 200, ""},
		"an unsound one": {newWorld(), admissionv1.Create, cluster(pods("x")), nil, 422,
			`WorkloadCluster.polder.dev "demo" is invalid: spec.network.podCIDRs[0]: Invalid value: "x": write a range of addresses such as 10.244.0.0/16`},
		"a change, which is compared": {newWorld(), admissionv1.Update, cluster(), cluster(pods("10.1.0.0/16")), 422,
			`WorkloadCluster.polder.dev "demo" is invalid: spec.network.podCIDRs: Forbidden: it cannot be changed from 10.1.0.0/16; make another cluster`},
		"nobody knows":   {unknown, admissionv1.Create, cluster(), nil, 500, "reading the providers: broken"},
		"one is deleted": {newWorld(), admissionv1.Delete, nil, cluster(), 200, ""},
		"one that is protected is not": {newWorld(), admissionv1.Delete, nil, guardedOne, 403,
			"cluster demo is protected from deletion; set spec.deletionProtection to false first"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.world.checker(t).Validate(ctrladmission.NewDecoder(scheme(t)))(t.Context(), request(t, c.operation, c.o, c.old))
			if got.Result == nil || got.Result.Code != c.code || got.Allowed != (c.code == 200) || got.Result.Message != c.message {
				t.Errorf("%t %+v", got.Allowed, got.Result)
			}
		})
	}
}

func TestDeletionOfWhatCannotBeRead(t *testing.T) {
	for raw, allowed := range map[string]bool{
		`{"spec":{"provider":5}}`:                           true,
		`{"spec":{"provider":5,"deletionProtection":true}}`: false,
		`{"spec":{"deletionProtection":"yes"}}`:             false, // it may be protected
		`{"spec":"text"}`:                                   false,
	} {
		req := request(t, admissionv1.Delete, nil, cluster())
		req.OldObject.Raw = []byte(raw)
		if got := newWorld().checker(t).Validate(ctrladmission.NewDecoder(scheme(t)))(t.Context(), req); got.Allowed != allowed {
			t.Errorf("%s: %+v", raw, got)
		}
	}
}

func TestValidateProvider(t *testing.T) {
	for name, c := range map[string]struct {
		object *v1alpha1.WorkloadCluster
		breaks bool
		code   int32
	}{
		"a sound one":                      {cluster(), false, 200},
		"what the plane says is let alone": {cluster(pods("x")), false, 200},
		"a size it does not have":          {cluster(size("none")), false, 422},
		"it breaks down":                   {cluster(), true, 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.providers = guarded(stubProvider{breaks: c.breaks})
			got := w.checker(t).ValidateProvider(ctrladmission.NewDecoder(scheme(t)))(t.Context(), request(t, admissionv1.Create, c.object, nil))
			if got.Result.Code != c.code || got.Allowed != (c.code == 200) {
				t.Errorf("%t %+v", got.Allowed, got.Result)
			}
		})
	}
}

// A namespace from the same file as its first cluster may not be known yet: the client is told to try again.
func TestNamespacesThatAreNotKnownYet(t *testing.T) {
	w, decoder := newWorld().without("Namespace/a"), ctrladmission.NewDecoder(scheme(t))
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.CatalogueNamespace, Name: "shared"}}
	s.Spec = csv1.ClusterStackSpec{
		Provider: "local", Name: "scs", KubernetesVersion: "1.36", Channel: csv1.ChannelStable,
		AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"kaas": "yes"}},
	}
	c := w.add(s).checker(t)
	for name, handle := range map[string]ctrladmission.HandlerFunc{"mutate": c.Mutate, "validate": c.Validate(decoder), "provider": c.ValidateProvider(decoder)} {
		got := handle(t.Context(), request(t, admissionv1.Create, cluster(minor("")), nil))
		want := `namespaces "a" not found; if it is new, it is not known here yet: try again`
		if r := got.Result; got.Allowed || r.Code != http.StatusServiceUnavailable || r.Message != want || r.Details == nil || r.Details.RetryAfterSeconds != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	s.Spec.AllowedNamespaces = &metav1.LabelSelector{}
	if got := w.add(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).checker(t).Validate(decoder)(t.Context(), request(t, admissionv1.Create, cluster(), nil)); !got.Allowed {
		t.Errorf("everybody is served: %+v", got.Result)
	}
}

// A quantity with so many digits that it cannot be decoded or compared does no harm: neither before the API server has
// validated it, nor if it was stored once.
func TestAmountsThatNobodyCanCount(t *testing.T) {
	w := newWorld()
	for _, amount := range []string{"1e2000000000", "1e-2000000000", "12345678901234567890e2000000000"} {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			req := request(t, operation, cluster(minor("")), cluster())
			for _, o := range []*runtime.RawExtension{&req.Object, &req.OldObject} {
				o.Raw = bytes.Replace(o.Raw, []byte(`"name":"default"`), []byte(`"name":"default","machine":{"cpu":1,"memory":"`+amount+`"}`), 1)
			}
			if got := w.checker(t).Mutate(t.Context(), req); !got.Allowed || len(got.Patches) != 1 {
				t.Errorf("%s %s: %+v", operation, amount, got)
			}
		}
	}
	shape := func(amount string) change {
		return func(o *v1alpha1.WorkloadCluster) {
			o.Spec.Workers[0].Machine = &v1alpha1.MachineShape{CPU: 1, Memory: resource.MustParse(amount)}
		}
	}
	if got := checkChange(t, w, cluster(shape("1e2000000000")), cluster(shape("1Gi"))); got != nil {
		t.Error(got)
	}
	want := []string{"spec.workers[0].machine: Invalid value: memory: 100e1999999998 has an exponent; write it with a unit, for example 4Gi"}
	if d := cmp.Diff(want, checkChange(t, w, cluster(shape("1Gi")), cluster(shape("1e2000000000")))); d != "" {
		t.Error(d)
	}
}

func TestWhatNobodyCanRead(t *testing.T) {
	c, decoder := newWorld().checker(t), ctrladmission.NewDecoder(scheme(t))
	for name, handle := range map[string]ctrladmission.HandlerFunc{"mutate": c.Mutate, "validate": c.Validate(decoder), "provider": c.ValidateProvider(decoder)} {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			bad := request(t, operation, cluster(), cluster())
			if operation == admissionv1.Create {
				bad.Object.Raw = []byte("{")
			}
			bad.OldObject.Raw = []byte("{")
			if got := handle(t.Context(), bad); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("%s %s: %+v", name, operation, got)
			}
		}
	}
	bad := request(t, admissionv1.Delete, nil, nil)
	bad.OldObject.Raw = []byte("{")
	if got := c.Validate(decoder)(t.Context(), bad); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("%+v", got)
	}
}
