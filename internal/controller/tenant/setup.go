package tenant

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/polder-kaas/polder/api/v1alpha1"
	polderreconcile "github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// namespaceIndex is that of Tenants by the names of their namespaces.
const namespaceIndex = "namespace"

// CacheByObject returns what of the kinds that only this controller reads is kept in memory: that of Tenants.
func CacheByObject() (map[client.Object]cache.ByObject, error) {
	of, err := labels.NewRequirement(v1alpha1.TenantLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	only := cache.ByObject{Label: labels.NewSelector().Add(*of)}
	return map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: only, &rbacv1.RoleBinding{}: only, &rbacv1.ClusterRole{}: only,
		&rbacv1.ClusterRoleBinding{}: only,
	}, nil
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Tenant{}, namespaceIndex, //nolint:forbidigo // it only registers
		func(o client.Object) []string {
			if t, ok := o.(*v1alpha1.Tenant); ok {
				return []string{t.NamespaceName()}
			}
			return nil
		})
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("tenant").
		For(&v1alpha1.Tenant{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, statusLost()))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.tenantsOfNamespace),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	b = b.Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(tenantOfLabel),
		builder.WithPredicates(limitsChanged()))
	if r.Planes != nil {
		b = b.WatchesRawSource(source.Channel(tenancy.NewEvents(r.Planes),
			handler.EnqueueRequestsFromMapFunc(r.tenantsOfNamespace)))
	}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	} {
		b = b.Watches(o, handler.EnqueueRequestsFromMapFunc(tenantOfLabel),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	return b.WithOptions(o).Complete(r)
}

// statusLost passes Tenants that have lost their status.
func statusLost() predicate.Predicate {
	return polderreconcile.StatusLostPredicate(
		func(o *v1alpha1.Tenant) []metav1.Condition { return o.Status.Conditions },
	)
}

// limitsChanged passes quotas whose limits are others, or are in force now. What is used changes all the time.
func limitsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*corev1.ResourceQuota)
		b, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
		return ok && ok2 && (!equality.Semantic.DeepEqual(a.Spec, b.Spec) || !maps.Equal(a.Labels, b.Labels) ||
			!equality.Semantic.DeepEqual(a.Status.Hard, b.Status.Hard) || len(a.Status.Used) != len(b.Status.Used))
	}}
}

// tenantsOfNamespace maps a namespace to the Tenants that want it.
func (r *Reconciler) tenantsOfNamespace(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var l v1alpha1.TenantList
	if err := r.Cache.List(ctx, &l, client.MatchingFields{namespaceIndex: o.GetName()}); err != nil {
		return nil // the cache fails only while it starts or stops
	}
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// tenantOfLabel maps what was made for a Tenant to it.
func tenantOfLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.TenantLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
