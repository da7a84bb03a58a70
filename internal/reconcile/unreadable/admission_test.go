package unreadable

import (
	"context"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestMendOldObject(t *testing.T) {
	for name, c := range map[string]struct {
		operation admissionv1.Operation
		old, new  string
		allowed   bool
		seen      string // the provider of the old object
	}{
		"one that can be read is as it was":   {admissionv1.Update, `{"spec":{"provider":"a"}}`, `{"spec":{"provider":"b"}}`, true, "a"},
		"a repair looks like no change":       {admissionv1.Update, `{"spec":{"provider":5}}`, `{"spec":{"provider":"b"}}`, true, "b"},
		"a field that is taken away is empty": {admissionv1.Update, `{"spec":{"provider":5}}`, `{"spec":{}}`, true, ""},
		"what is still wrong is refused":      {admissionv1.Update, `{"spec":{"provider":5}}`, `{"spec":{"provider":6}}`, false, ""},
		"other operations are not helped":     {admissionv1.Delete, `{"spec":{"provider":5}}`, ``, false, ""},
		"no JSON":                             {admissionv1.Update, `{`, `{"spec":{"provider":"b"}}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, seen := newScheme(t), ""
			decoder := admission.NewDecoder(scheme)
			next := admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
				o := &v1alpha1.WorkloadCluster{}
				if err := decoder.DecodeRaw(req.OldObject, o); err != nil {
					return admission.Errored(http.StatusBadRequest, err)
				}
				seen = o.Spec.Provider
				return admission.Allowed("")
			})
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: c.operation, Kind: metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkloadCluster")),
			}}
			req.OldObject.Raw, req.Object.Raw = []byte(c.old), []byte(c.new)
			if got := MendOldObject(scheme, next, admissionv1.Update).Handle(t.Context(), req); got.Allowed != c.allowed || seen != c.seen {
				t.Errorf("%+v with old provider %q, want %q", got, seen, c.seen)
			}
		})
	}
}
