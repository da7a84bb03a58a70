package reconcile

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/tenant"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

// The rights and robots of a tenant, whose namespace is marked as its own. The quota is not looked at: it stays when the
// Tenant goes.
func TestTenant(t *testing.T) {
	t.Parallel()
	found, err := reconciletest.RunChecks(t.Context(), api(t), reconciletest.Subject{
		Setup: func(_ context.Context, mgr ctrl.Manager) error {
			live, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
			if err != nil {
				return err
			}
			return (&tenant.Reconciler{Cache: mgr.GetClient(), Live: live}).SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2})
		},
		// Tenants have no namespace, and those of cases beside this one must not be seen.
		Cache: func(ns string) map[client.Object]cache.ByObject {
			named := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", ns)}
			marked := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.TenantLabel: ns})}
			return map[client.Object]cache.ByObject{
				&v1alpha1.Tenant{}: named, &corev1.Namespace{}: named, &rbacv1.ClusterRole{}: marked, &rbacv1.ClusterRoleBinding{}: marked,
			}
		},
		Kinds: []client.Object{&rbacv1.RoleBinding{}},
		CreateInputs: func(ctx context.Context, c client.Client, ns string) error {
			mark := map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.TenantLabel: ns}}}
			if err := patch(ctx, c, &corev1.Namespace{}, "", ns, mark); err != nil {
				return err
			}
			o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: v1alpha1.TenantSpec{
				Members: []v1alpha1.TenantMember{{Kind: v1alpha1.MemberGroup, Name: "a", Role: v1alpha1.TenantAdmin}, {Kind: v1alpha1.MemberUser, Name: "b", Role: v1alpha1.TenantViewer}},
				Robots:  []v1alpha1.TenantRobot{{Name: "ci", Role: v1alpha1.TenantEditor}},
			}}
			return c.Create(ctx, o)
		},
		CheckSettled: func(ctx context.Context, c client.Client, ns string) error {
			o := &v1alpha1.Tenant{}
			if err := c.Get(ctx, client.ObjectKey{Name: ns}, o); err != nil {
				return err
			}
			// This plane has no operator, and nobody else knows what clusters ask for: the quota is never counted.
			r := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
			if r == nil || r.Message != "its quota is being counted" || r.ObservedGeneration != o.Generation {
				return fmt.Errorf("%+v", o.Status)
			}
			var all rbacv1.RoleBindingList
			if err := c.List(ctx, &all, client.InNamespace(ns)); err != nil || len(all.Items) != 3 {
				return fmt.Errorf("%d bindings: %w", len(all.Items), err)
			}
			return c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "robot-ci"}, &corev1.ServiceAccount{})
		},
		Delete: func(ctx context.Context, c client.Client, ns string) error {
			return client.IgnoreNotFound(c.Delete(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		},
		Timeout: patience,
	}, "crash", "missed", "stale", "quiet", "deleted")
	if err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
