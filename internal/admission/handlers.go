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
	"github.com/polder-kaas/polder/stack/schema"
)

// Mutate answers the API server with a patch of the fields that Default fills in.
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
		// spec.stack may be absent, where nothing can be added. The API server reports what is required.
		return admission.Allowed("")
	}
	was := o.Spec
	if err := c.Default(ctx, o, old); err != nil {
		return FailureResponse(err)
	}
	// Only these two fields are patched: a newer version of the kind may have fields that are not known here.
	var patch []jsonpatch.JsonPatchOperation
	if o.Spec.Provider != was.Provider {
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/provider", o.Spec.Provider))
	}
	if v := o.Spec.Stack.KubernetesVersion; v != was.Stack.KubernetesVersion {
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/stack/kubernetesVersion", v))
	}
	return admission.Patched("", patch...)
}

// decodeDefaultingFields decodes only the fields that defaults depend on: the API server has not validated the object
// yet, and a quantity in it may be such that decoding it takes all memory.
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

// Validate answers the API server with all errors of a WorkloadCluster, and refuses the deletion of a protected one.
func (c *Checker) Validate(decoder admission.Decoder) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		if req.Operation == admissionv1.Delete {
			return c.validateDeletion(req)
		}
		o, old, err := decodeRequest(decoder, req)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		errs, err := c.Check(ctx, o, old, ptr.Deref(req.DryRun, false))
		if err != nil {
			return FailureResponse(err)
		}
		return ValidationResponse(o.Name, errs)
	}
}

// ValidateProvider answers with errors that only the provider can find. The plane reports all others.
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

// FailureResponse is for a check that could not be made. An object that is not found is mostly so new that the cache
// does not have it yet, such as a namespace from the same file: clients are told to try again, which those of
// Kubernetes do by themselves.
func FailureResponse(err error) admission.Response {
	if !apierrors.IsNotFound(err) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("%v; if it is new, it is not known here yet: try again", err), Details: &metav1.StatusDetails{
			RetryAfterSeconds: 1,
		},
	}}}
}

// ValidationResponse allows an object without errors, and refuses others with all their errors, up to a number that
// people can read.
func ValidationResponse(name string, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	if most := schema.MaxErrors; len(errs) > most {
		errs = append(errs[:most:most],
			field.Invalid(spec, field.OmitValueType{}, fmt.Sprintf("more is wrong than these %d; correct them first", most)))
	}
	status := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("WorkloadCluster").GroupKind(), name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// decodeRequest decodes the objects of a request. old is nil if the object is created.
func decodeRequest(decoder admission.Decoder, req admission.Request) (o, old *v1alpha1.WorkloadCluster, err error) {
	o = &v1alpha1.WorkloadCluster{}
	if err := decoder.Decode(req, o); err != nil {
		return nil, nil, err
	}
	o.Namespace = req.Namespace // clients may leave it out of the object
	if req.Operation == admissionv1.Update {
		old = &v1alpha1.WorkloadCluster{}
		if err := decoder.DecodeRaw(req.OldObject, old); err != nil {
			return nil, nil, err
		}
	}
	return o, old, nil
}

// validateDeletion refuses the deletion of a protected cluster. The object is in OldObject: requests that delete have
// no other.
func (c *Checker) validateDeletion(req admission.Request) admission.Response {
	// Only this: a cluster of which something else cannot be read can be deleted.
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			DeletionProtection *bool `json:"deletionProtection"`
		} `json:"spec"`
	}
	if err := utiljson.Unmarshal(req.OldObject.Raw, &o); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if ptr.Deref(o.Spec.DeletionProtection, false) {
		return admission.Denied(
			fmt.Sprintf("cluster %s is protected from deletion; set spec.deletionProtection to false first", o.Metadata.Name),
		)
	}
	c.Reservations.Observe(req.Namespace, o.Metadata.Name, o.Metadata.Generation)
	return admission.Allowed("")
}
