// Package tenant gives Tenants what they are made of: a namespace, rights in it, a quota. A namespace that is not
// marked as the Tenant's is left alone, and none is made in place of one that is gone.
package tenant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	polderreconcile "github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Reconciler makes namespaces, rights and quotas of Tenants.
type Reconciler struct {
	Cache client.Reader
	Live  client.Client // reads from the API server, and writes, with rights of its own
	// Planes are those of tenants with one of their own; nil: there are none.
	Planes tenancy.Planes
}

// planeInterval is when a plane of its own is asked again whether the Tenant is ready there: of that nothing is told.
const (
	planeInterval      = 2 * time.Minute
	planeStartInterval = 2 * time.Second
)

// refusal is why a Tenant is given nothing.
type refusal struct{ reason, message string }

// Reconcile brings one Tenant to what its spec says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &v1alpha1.Tenant{}
	if err := r.Cache.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !t.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // what goes with it is garbage, and is collected
	}
	tracked := polderreconcile.Track(t)
	t.Status.Namespace = t.NamespaceName()
	conditions := polderreconcile.NewConditions(t, &t.Status.Conditions, v1alpha1.ReasonReady)
	refused, err := r.ensureNamespace(ctx, t)
	if err == nil && refused == nil {
		err = r.ensureObjects(ctx, t)
	}
	var result ctrl.Result
	if t.IsDedicated() && err == nil && refused == nil {
		refused, err = r.ensurePlane(ctx, t)
		result.RequeueAfter = planeInterval
		if refused != nil {
			result.RequeueAfter = planeStartInterval
		}
	}
	switch {
	case refused != nil:
		conditions.SetFalse(v1alpha1.ConditionReady, refused.reason, polderreconcile.TruncateMessage(refused.message))
	case err != nil:
		conditions.SetFalse(v1alpha1.ConditionReady, v1alpha1.ReasonApplyFailed,
			polderreconcile.TruncateMessage("it could not be written: "+err.Error()))
	case t.IsDedicated():
		conditions.SetTrue(v1alpha1.ConditionReady,
			fmt.Sprintf("its members can use namespace %s, which has a plane of its own", t.NamespaceName()))
	case !r.isCounted(ctx, t):
		conditions.SetFalse(v1alpha1.ConditionReady, v1alpha1.ReasonProgressing, "its quota is being counted")
	default:
		conditions.SetTrue(v1alpha1.ConditionReady, "its members can use namespace "+t.NamespaceName())
	}
	t.Status.ObservedGeneration = t.Generation
	return polderreconcile.Finish(result, err, tracked.Write(ctx, r.Live))
}

// isCounted reports whether the quota is in force: until then the API server refuses what it counts.
func (r *Reconciler) isCounted(ctx context.Context, t *v1alpha1.Tenant) bool {
	q := &corev1.ResourceQuota{}
	err := r.Cache.Get(ctx, client.ObjectKey{Namespace: t.NamespaceName(), Name: v1alpha1.TenantQuotaName}, q)
	return err == nil && equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) && len(q.Status.Used) == len(q.Spec.Hard)
}

// ensureNamespace makes the namespace, or finds it. What the cache does not find as it should be is read from the API
// server: one that is there may be missed.
func (r *Reconciler) ensureNamespace(ctx context.Context, t *v1alpha1.Tenant) (*refusal, error) {
	want := tenancy.NewNamespace(t)
	if tenancy.IsReserved(want.Name) {
		return &refusal{v1alpha1.ReasonNamespaceReserved,
			fmt.Sprintf("namespace %s is the plane's own; make a tenant with another spec.namespace", want.Name)}, nil
	}
	ns := &corev1.Namespace{}
	err := r.Cache.Get(ctx, client.ObjectKeyFromObject(want), ns)
	if err == nil && isMarked(ns, want) && ns.DeletionTimestamp.IsZero() && string(ns.UID) == t.Status.NamespaceUID {
		return nil, nil
	}
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), ns)
	switch {
	case apierrors.IsNotFound(err) && t.Status.NamespaceUID != "":
		return lostNamespace(t, "is gone, with all clusters that were in it"), nil
	case apierrors.IsNotFound(err):
		if err := r.Live.Create(ctx, want); err != nil {
			return nil, err
		}
		t.Status.NamespaceUID = string(want.UID)
		return nil, nil
	case err != nil:
		return nil, err
	}
	if refused := checkOwner(t, ns); refused != nil {
		return refused, nil
	}
	if !ns.DeletionTimestamp.IsZero() {
		return lostNamespace(t, "is being deleted, with all clusters in it"), nil
	}
	t.Status.NamespaceUID = string(ns.UID)
	return nil, r.markNamespace(ctx, ns, want)
}

// lostNamespace says that there is no namespace, and none is made: whoever finds an empty one would believe that all is
// well.
func lostNamespace(t *v1alpha1.Tenant, what string) *refusal {
	if t.IsDedicated() {
		return &refusal{v1alpha1.ReasonNamespaceLost, fmt.Sprintf(
			"namespace %s %s, and its plane goes with it; delete the tenant, and make it again", t.NamespaceName(), what)}
	}
	return &refusal{v1alpha1.ReasonNamespaceLost, fmt.Sprintf(
		"namespace %s %s; delete the tenant, or give it a new, empty one with: kubectl create namespace %s && kubectl label namespace %s %s=%s",
		t.NamespaceName(), what, t.NamespaceName(), t.NamespaceName(), v1alpha1.TenantLabel, t.Name)}
}

// checkOwner refuses a namespace that is not the Tenant's: its members would have all that is in it.
func checkOwner(t *v1alpha1.Tenant, ns *corev1.Namespace) *refusal {
	owner, uid := ns.Labels[v1alpha1.TenantLabel], ns.Annotations[v1alpha1.TenantUIDAnnotation]
	switch {
	case owner == "":
		return &refusal{v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
			"namespace %s is there already; to give it to the tenant with all that is in it: kubectl label namespace %s %s=%s",
			ns.Name, ns.Name, v1alpha1.TenantLabel, t.Name)}
	case owner != t.Name:
		return &refusal{v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
			"namespace %s is that of tenant %s; make a tenant with another spec.namespace", ns.Name, owner)}
	case uid != "" && uid != string(t.UID):
		return &refusal{v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
			"namespace %s is that of an earlier tenant of this name; to give it to this one with all that is in it: kubectl annotate namespace %s %s-",
			ns.Name, ns.Name, v1alpha1.TenantUIDAnnotation)}
	}
	return checkPlane(t, ns)
}

// isMarked reports whether a namespace has the labels and annotations that are wanted. What a customer's label says is
// the platform operator's.
func isMarked(ns, want *corev1.Namespace) bool {
	_, customer := ns.Labels[v1alpha1.CustomerLabel]
	return customer && ns.Labels[v1alpha1.QuotaLabel] == v1alpha1.QuotaOwn &&
		ns.Labels[v1alpha1.TenantLabel] == want.Labels[v1alpha1.TenantLabel] &&
		ns.Annotations[v1alpha1.TenantUIDAnnotation] == want.Annotations[v1alpha1.TenantUIDAnnotation]
}

// markNamespace writes what the namespace lacks of labels and annotations.
func (r *Reconciler) markNamespace(ctx context.Context, ns, want *corev1.Namespace) error {
	if isMarked(ns, want) {
		return nil
	}
	before := ns.DeepCopy()
	if _, ok := ns.Labels[v1alpha1.CustomerLabel]; !ok {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, v1alpha1.CustomerLabel, want.Labels[v1alpha1.CustomerLabel])
	}
	metav1.SetMetaDataLabel(&ns.ObjectMeta, v1alpha1.QuotaLabel, v1alpha1.QuotaOwn)
	metav1.SetMetaDataAnnotation(&ns.ObjectMeta, v1alpha1.TenantUIDAnnotation,
		want.Annotations[v1alpha1.TenantUIDAnnotation])
	return r.Live.Patch(ctx, ns, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// ensureObjects writes what differs from what the spec says, and deletes the accounts of robots that are not in it.
func (r *Reconciler) ensureObjects(ctx context.Context, t *v1alpha1.Tenant) error {
	keep := map[string]bool{}
	for _, want := range tenancy.Objects(t) {
		if _, ok := want.(*corev1.ServiceAccount); ok {
			keep[want.GetName()] = true
		}
		if err := r.ensureObject(ctx, t, want); err != nil {
			return err
		}
	}
	var accounts corev1.ServiceAccountList
	if err := r.Cache.List(ctx, &accounts, client.InNamespace(t.NamespaceName()),
		client.MatchingLabels{v1alpha1.TenantLabel: t.Name}); err != nil {
		return err
	}
	for i := range accounts.Items {
		a := &accounts.Items[i]
		if keep[a.Name] || !metav1.IsControlledBy(a, t) || !a.DeletionTimestamp.IsZero() {
			continue
		}
		err := r.Live.Delete(ctx, a, client.Preconditions{UID: ptr.To(a.UID)})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// ensureObject writes one object if it is not as it should be.
func (r *Reconciler) ensureObject(ctx context.Context, t *v1alpha1.Tenant, want client.Object) error {
	have, ok := want.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", want)
	}
	err := r.Cache.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		err = r.Live.Create(ctx, want)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// It lacks the label, or the cache is old.
		if err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if isForeign(t, have) {
		return fmt.Errorf("%T %s is there already and belongs to somebody else; delete it", want, client.ObjectKeyFromObject(want))
	}
	if !adjust(have, want) {
		return nil
	}
	return r.Live.Update(ctx, have)
}

// isForeign reports whether somebody else made an object.
func isForeign(t *v1alpha1.Tenant, have client.Object) bool {
	c := metav1.GetControllerOf(have)
	return c != nil && c.UID != t.UID && (c.Kind != "Tenant" || c.Name != t.Name)
}

// adjust makes an object what it should be, and reports whether it was not.
func adjust(have, want client.Object) bool {
	before, ok := have.DeepCopyObject().(client.Object)
	if !ok {
		return false
	}
	labels := have.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for k, v := range want.GetLabels() {
		labels[k] = v
	}
	have.SetLabels(labels)
	have.SetOwnerReferences(want.GetOwnerReferences())
	switch h := have.(type) {
	case *corev1.ResourceQuota:
		if w, ok := want.(*corev1.ResourceQuota); ok {
			h.Spec = w.Spec
		}
	case *rbacv1.RoleBinding:
		if w, ok := want.(*rbacv1.RoleBinding); ok {
			h.Subjects = w.Subjects
		}
	case *rbacv1.ClusterRole:
		if w, ok := want.(*rbacv1.ClusterRole); ok {
			h.Rules = w.Rules
		}
	case *rbacv1.ClusterRoleBinding:
		if w, ok := want.(*rbacv1.ClusterRoleBinding); ok {
			h.Subjects = w.Subjects
		}
	}
	return !equality.Semantic.DeepEqual(before, have)
}
