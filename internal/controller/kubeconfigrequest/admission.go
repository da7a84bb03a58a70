package kubeconfigrequest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

// maxListedClusters is how many clusters are listed for somebody who names one that does not exist.
const maxListedClusters = 10

// maxPendingRequests is how many requests of a namespace may wait for their answer.
const maxPendingRequests = 20

// MutatingHandler writes the user who asks into a new request, whatever is written there. It is for a mutating webhook,
// and is worth nothing without ValidatingHandler, since other webhooks may change what it wrote.
func MutatingHandler(decoder admission.Decoder) admission.HandlerFunc {
	return func(_ context.Context, req admission.Request) admission.Response {
		if req.Operation != admissionv1.Create {
			return admission.Allowed("")
		}
		// Unstructured, since a field that this version does not know must stay.
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(req, u); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if err := unstructured.SetNestedField(u.Object, req.UserInfo.Username, "spec", "username"); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		raw, err := u.MarshalJSON()
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, raw)
	}
}

// ValidatingHandler refuses a new request that is invalid, of a user who may not have the role, for a cluster that does
// not exist, or while too many wait. It refuses to delete a request of somebody else. It is for a validating webhook.
// The reader must not be a cache: whoever creates a cluster and asks for access at once would be told that there is
// none.
func ValidatingHandler(live client.Reader, reviews Reviewer, decoder admission.Decoder) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		if req.Operation == admissionv1.Delete {
			return denyOnFirstReason(
				ctx, func(ctx context.Context) (string, error) { return checkDeletionAllowed(ctx, reviews, req, decoder) },
			)
		}
		if req.Operation != admissionv1.Create {
			return admission.Allowed("")
		}
		o := &v1alpha1.KubeconfigRequest{}
		if err := decoder.Decode(req, o); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		o.Namespace = req.Namespace
		if o.Spec.Username != req.UserInfo.Username {
			return admission.Denied(
				fmt.Sprintf("spec.username is %q, but %q asks; the plane fills it in, and nobody may change it", o.Spec.Username,
					req.UserInfo.Username),
			)
		}
		if w := validateRequest(o); w != nil {
			r := admission.Denied(w.message)
			r.Result.Code, r.Result.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
			return r
		}
		// The role is checked first: who may not see a cluster is not told whether it exists.
		return denyOnFirstReason(ctx,
			func(ctx context.Context) (string, error) { return checkRoleAllowed(ctx, reviews, req, o) },
			func(ctx context.Context) (string, error) { return checkNamedClusterExists(ctx, live, reviews, req, o) },
			func(ctx context.Context) (string, error) { return checkPendingLimit(ctx, live, o) },
		)
	}
}

// checkPendingLimit refuses a request if many of its namespace wait already. Each is tried again and again, and all of
// them wait for the same few clusters.
func checkPendingLimit(ctx context.Context, live client.Reader, o *v1alpha1.KubeconfigRequest) (string, error) {
	var l v1alpha1.KubeconfigRequestList
	if err := live.List(ctx, &l, client.InNamespace(o.Namespace)); err != nil {
		return "", err
	}
	pending := 0
	for i := range l.Items {
		if !isAnswered(&l.Items[i]) {
			pending++
		}
	}
	if pending < maxPendingRequests {
		return "", nil
	}
	return fmt.Sprintf("%d requests of namespace %s wait for their answer already, and more may not; wait until their clusters are ready, or delete some of them",
		pending, o.Namespace), nil
}

// denyOnFirstReason denies a request for the first reason that a check returns.
func denyOnFirstReason(ctx context.Context, checks ...func(context.Context) (string, error)) admission.Response {
	for _, check := range checks {
		reason, err := check(ctx)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if reason != "" {
			return admission.Denied(reason)
		}
	}
	return admission.Allowed("")
}

// checkDeletionAllowed refuses to delete a request of somebody else: everybody who may see clusters may create and
// delete requests. Who may delete the cluster may delete requests for it; among those are Kubernetes' own controllers.
// A request that cannot be decoded is nobody's.
func checkDeletionAllowed(ctx context.Context, reviews Reviewer, req admission.Request,
	decoder admission.Decoder) (string, error) {
	o := &v1alpha1.KubeconfigRequest{}
	if err := decoder.DecodeRaw(req.OldObject, o); err != nil {
		o = &v1alpha1.KubeconfigRequest{}
	}
	if o.Spec.Username != "" && o.Spec.Username == req.UserInfo.Username {
		return "", nil
	}
	may, err := reviewAccess(ctx, reviews, req, "delete", o.Spec.ClusterName)
	if err != nil || may {
		return "", err
	}
	return fmt.Sprintf("the request is that of %q, and goes when its time is over; to delete it now, %s needs the right to delete workloadclusters.%s named %q in namespace %s",
		o.Spec.Username, req.UserInfo.Username, v1alpha1.GroupVersion.Group, o.Spec.ClusterName, req.Namespace), nil
}

// checkNamedClusterExists refuses a request that names no cluster. Who may list clusters is told which there are.
func checkNamedClusterExists(ctx context.Context, live client.Reader, reviews Reviewer, req admission.Request,
	o *v1alpha1.KubeconfigRequest) (string, error) {
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.ClusterName}
	err := live.Get(ctx, key, &v1alpha1.WorkloadCluster{})
	if !apierror.IsObjectNotFound(err, "workloadclusters", key.Name) {
		return "", err
	}
	reason := fmt.Sprintf("spec.clusterName: there is no WorkloadCluster %s in namespace %s", key.Name, key.Namespace)
	may, err := reviewAccess(ctx, reviews, req, "list", "")
	if err != nil || !may {
		return reason, err
	}
	var l v1alpha1.WorkloadClusterList
	if err := live.List(ctx, &l, client.InNamespace(o.Namespace), client.Limit(maxListedClusters+1)); err != nil {
		return "", err
	}
	return reason + "; " + describeClusters(l.Items), nil
}

// describeClusters lists clusters for a message.
func describeClusters(clusters []v1alpha1.WorkloadCluster) string {
	if len(clusters) == 0 {
		return "there are none at all yet"
	}
	var out []string
	for i := range clusters {
		out = append(out, clusters[i].Name)
	}
	slices.Sort(out)
	if len(out) > maxListedClusters {
		return "there are " + strings.Join(out[:maxListedClusters], ", ") + " and more"
	}
	return "there are " + strings.Join(out, ", ")
}
