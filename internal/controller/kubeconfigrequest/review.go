package kubeconfigrequest

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Reviewer creates SubjectAccessReviews. Any client does.
type Reviewer interface {
	Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error
}

// requiredVerb returns what a user must be allowed to do with a WorkloadCluster to get a role in its cluster: who may
// change it can do anything to it, and who may see it may look into it.
func requiredVerb(role v1alpha1.Role) string {
	if role == v1alpha1.RoleViewer {
		return "get"
	}
	return "update"
}

// checkRoleAllowed refuses a role that the user may not have.
func checkRoleAllowed(ctx context.Context, reviews Reviewer, req admission.Request,
	o *v1alpha1.KubeconfigRequest) (string, error) {
	v := requiredVerb(o.Spec.Role)
	may, err := reviewAccess(ctx, reviews, req, v, o.Spec.ClusterName)
	if err != nil || may {
		return "", err
	}
	return fmt.Sprintf("%s may not be %s of cluster %s: that needs the right to %s workloadclusters.%s of that name in namespace %s",
		req.UserInfo.Username, o.Spec.Role, o.Spec.ClusterName, v, v1alpha1.GroupVersion.Group, req.Namespace), nil
}

// reviewAccess asks the plane whether the user may do something with a WorkloadCluster of the namespace. An empty name
// means all of them.
func reviewAccess(ctx context.Context, reviews Reviewer, req admission.Request, verb, name string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range req.UserInfo.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: req.UserInfo.Username, Groups: req.UserInfo.Groups, UID: req.UserInfo.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: req.Namespace, Verb: verb, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: "workloadclusters", Name: name,
		},
	}}
	if err := reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may %s workloadclusters: %w", req.UserInfo.Username, verb, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
