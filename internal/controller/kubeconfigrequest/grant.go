package kubeconfigrequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
)

// fieldOwner owns the fields of the roles and bindings in workload clusters.
const fieldOwner = client.FieldOwner("polder-access")

// grantTimeout is how long a cluster may take for all of them: one that is slow must not keep a worker from others.
const grantTimeout = 30 * time.Second

// grantRoles applies the roles of our groups in the workload cluster, before anybody gets into such a group.
func (r *Reconciler) grantRoles(ctx context.Context, s *scope) error {
	w, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return s.stopIfBlocked(newUnreachableObstacle(s.cluster.Name, err))
	}
	done, err := r.Limiter.Acquire(ctx, s.cluster.Namespace)
	if errors.Is(err, fairness.ErrBusy) {
		return s.waitForSlot(err)
	}
	if err != nil {
		return err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	return s.stopIfBlocked(obstacleFromApplyError(s.cluster.Name, applyRoles(limited, w.Client)))
}

// waitForSlot waits for a slot of the namespace. A request that had one before keeps the message about what came of it.
func (s *scope) waitForSlot(err error) error {
	after := wait.Jitter(slotRetryDelay, 1)
	ready := meta.FindStatusCondition(s.request.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && (ready.Reason == v1alpha1.ReasonUnreachable || ready.Reason == v1alpha1.ReasonApplyFailed) {
		return reconcile.Wait(after, "%v", err)
	}
	return s.stopIfBlocked(newObstacle(v1alpha1.ReasonProgressing, after, "cluster %s is not asked yet: %v",
		s.cluster.Name, err))
}

// applyRoles applies all roles and bindings. The API server writes none that is as it should be.
func applyRoles(ctx context.Context, workloadClient client.Client) error {
	for _, u := range roleObjects() {
		// With force: whatever others have done to these objects, our groups must have exactly these rights.
		if err := workloadClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner,
			client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// obstacleFromApplyError says why roles could not be applied; nil without an error.
func obstacleFromApplyError(cluster string, err error) *obstacle {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err): // roleRef of a binding is immutable
		return newObstacle(v1alpha1.ReasonApplyFailed, pollDelay,
			"cluster %s has a role or binding of ours that was changed; delete it there, and it is made anew: %v", cluster, err)
	case apierrors.IsForbidden(err), apierrors.IsConflict(err), apierrors.IsBadRequest(err):
		return newObstacle(v1alpha1.ReasonApplyFailed, pollDelay,
			"cluster %s does not take the roles of those who get access; it is tried again: %v", cluster, err)
	}
	return newUnreachableObstacle(cluster, err)
}

// newUnreachableObstacle says that a cluster cannot be reached.
func newUnreachableObstacle(cluster string, err error) *obstacle {
	return newObstacle(v1alpha1.ReasonUnreachable, pollDelay,
		"cluster %s cannot be reached, and is tried again every %s: %v", cluster, pollDelay, err)
}

// roleObjects returns the roles and bindings: admins may do everything; viewers may read what Kubernetes' role view
// has, and what it lacks because it is cluster-scoped.
func roleObjects() []*unstructured.Unstructured {
	const more = GroupViewer + ":cluster-scoped"
	read := func(group string, resources ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": []any{"get", "list", "watch"}}
	}
	role := newRBACObject("ClusterRole", GroupViewer)
	role.Object["rules"] = []any{
		read("", "nodes", "namespaces", "persistentvolumes"),
		read("storage.k8s.io", "storageclasses"),
		read("apiextensions.k8s.io", "customresourcedefinitions"),
	}
	return []*unstructured.Unstructured{
		newClusterRoleBinding(GroupAdmin, "cluster-admin", GroupAdmin),
		newClusterRoleBinding(GroupViewer, "view", GroupViewer),
		role,
		newClusterRoleBinding(more, GroupViewer, GroupViewer),
	}
}

// newClusterRoleBinding binds a ClusterRole to a group.
func newClusterRoleBinding(name, role, group string) *unstructured.Unstructured {
	u := newRBACObject("ClusterRoleBinding", name)
	u.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role}
	u.Object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.GroupKind, "name": group}}
	return u
}

// newRBACObject returns an object of RBAC without content.
func newRBACObject(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	u.SetName(name)
	return u
}
