package admission

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Mutate answers the API server with what is filled in.
func (c *Checker) Mutate(ctx context.Context, req admission.Request) admission.Response {
	o, err := decodeDefaultingFields(req.Object.Raw, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *v1alpha1.WorkloadCluster
	if req.Operation == admissionv1.Update {
		if old, err = decodeDefaultingFields(req.OldObject.Raw, req.Namespace); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if o.Spec.Stack.Name == "" {
		return admission.Allowed("") // there may be nothing to fill in to; the API server says that it is needed
	}
	was := o.Spec
	if err := c.Default(ctx, o, old); err != nil {
		return FailureResponse(err)
	}
	// Only these two are touched: a newer version of the kind may have fields that are not known here.
	var patch []jsonpatch.JsonPatchOperation
	if o.Spec.Provider != was.Provider {
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/provider", o.Spec.Provider))
	}
	if v := o.Spec.Stack.KubernetesVersion; v != was.Stack.KubernetesVersion {
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/stack/kubernetesVersion", v))
	}
	return admission.Patched("", patch...)
}

// decodeDefaultingFields reads what defaults depend on, and nothing else: the API server has not looked at the object yet, and amounts
// in it may be such that to read them takes all memory there is.
func decodeDefaultingFields(raw []byte, namespace string) (*v1alpha1.WorkloadCluster, error) {
	var part struct {
		Spec struct {
			Provider string                  `json:"provider"`
			Stack    v1alpha1.StackReference `json:"stack"`
		} `json:"spec"`
	}
	if err := utiljson.Unmarshal(raw, &part); err != nil {
		return nil, err
	}
	o := &v1alpha1.WorkloadCluster{}
	o.Namespace = namespace
	o.Spec.Provider, o.Spec.Stack = part.Spec.Provider, part.Spec.Stack
	return o, nil
}

// Validate answers the API server with what is wrong, and refuses to delete what is protected.
func (c *Checker) Validate(decoder admission.Decoder) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		if req.Operation == admissionv1.Delete {
			return validateDeletion(decoder, req)
		}
		o, old, err := decodeRequest(decoder, req)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		errs, err := c.Check(ctx, o, old)
		if err != nil {
			return FailureResponse(err)
		}
		return ValidationResponse(o.Name, errs)
	}
}

// ValidateProvider answers with what the provider alone can know: all else is said by the plane.
func (c *Checker) ValidateProvider(decoder admission.Decoder) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		o, old, err := decodeRequest(decoder, req)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		errs, err := c.CheckProvider(ctx, o, old)
		if err != nil {
			return FailureResponse(err)
		}
		return ValidationResponse(o.Name, errs)
	}
}

// FailureResponse says that something could not be found out. What is not there is mostly so new that the cache does not have it
// yet, as a namespace that came in the same file: clients are told to try again, which those of Kubernetes do by
// themselves.
func FailureResponse(err error) admission.Response {
	if !apierrors.IsNotFound(err) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("%v; if it is new, it is not known here yet: try again", err), Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}}
}

// ValidationResponse is an invalid object with all its errors, as far as anybody can read them, or nothing.
func ValidationResponse(name string, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], field.Invalid(spec, field.OmitValueType{}, fmt.Sprintf("more is wrong than these %d; correct them first", maxErrors)))
	}
	status := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("WorkloadCluster").GroupKind(), name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func decodeRequest(decoder admission.Decoder, req admission.Request) (o, old *v1alpha1.WorkloadCluster, err error) {
	o = &v1alpha1.WorkloadCluster{}
	if err := decoder.Decode(req, o); err != nil {
		return nil, nil, err
	}
	o.Namespace = req.Namespace // it may be left out of what is sent
	if req.Operation == admissionv1.Update {
		old = &v1alpha1.WorkloadCluster{}
		if err := decoder.DecodeRaw(req.OldObject, old); err != nil {
			return nil, nil, err
		}
	}
	return o, old, nil
}

func validateDeletion(decoder admission.Decoder, req admission.Request) admission.Response {
	o := &v1alpha1.WorkloadCluster{}
	if err := decoder.DecodeRaw(req.OldObject, o); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if ptr.Deref(o.Spec.DeletionProtection, false) {
		return admission.Denied(fmt.Sprintf("cluster %s is protected from deletion; set spec.deletionProtection to false first", o.Name))
	}
	return admission.Allowed("")
}
