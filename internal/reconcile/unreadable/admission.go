package unreadable

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// MendOldObject lets an unreadable object be repaired: webhooks decode the object as it was, too, and would refuse to
// change it. Fields of the old object that cannot be read are taken from the new one, as if they were not changed, or
// are left out. It is done only after next has failed to decode, and for these operations.
func MendOldObject(scheme *runtime.Scheme, next admission.Handler,
	operations ...admissionv1.Operation) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		res := next.Handle(ctx, req)
		if res.Allowed || res.Result == nil || res.Result.Code != http.StatusBadRequest ||
			!slices.Contains(operations, req.Operation) {
			return res
		}
		old, ok := mend(scheme, req)
		if !ok {
			return res
		}
		req.OldObject = runtime.RawExtension{Raw: old}
		return next.Handle(ctx, req)
	})
}

// mend returns the old object of a request without what cannot be read; false if it was readable, or still is not.
func mend(scheme *runtime.Scheme, req admission.Request) ([]byte, bool) {
	example, err := scheme.New(schema.GroupVersionKind(req.Kind))
	if err != nil {
		return nil, false
	}
	k := kindFilter{goType: reflect.TypeOf(example).Elem()}
	old, wrong := removeUnreadable(req.OldObject.Raw, k.decode)
	if old == nil || len(wrong) == 0 {
		return nil, false
	}
	var changed map[string]any
	if len(req.Object.Raw) > 0 && utiljson.Unmarshal(req.Object.Raw, &changed) != nil {
		return nil, false
	}
	for _, w := range wrong {
		value, found, err := unstructured.NestedFieldNoCopy(changed, w.path...)
		if err == nil && found && unstructured.SetNestedField(old, value, w.path...) != nil {
			return nil, false
		}
	}
	b, err := json.Marshal(old)
	return b, err == nil
}
