package reconcile

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/customernamespace"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

// The quota of a customer's namespace. Without check "stripped": whoever may change a quota means it.
func TestCustomerNamespace(t *testing.T) {
	t.Parallel()
	mark := func(value any) reconciletest.Action {
		return func(ctx context.Context, c client.Client, ns string) error {
			return patch(ctx, c, &corev1.Namespace{}, "", ns, map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.CustomerLabel: value}}})
		}
	}
	found, err := reconciletest.RunChecks(t.Context(), api(t), reconciletest.Subject{
		Setup: func(_ context.Context, mgr ctrl.Manager) error {
			return (&customernamespace.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}).
				SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2})
		},
		Kinds:        []client.Object{&corev1.ResourceQuota{}},
		User:         operator.User,
		CreateInputs: mark("acme"),
		CheckSettled: func(ctx context.Context, c client.Client, ns string) error {
			var all corev1.ResourceQuotaList
			if err := c.List(ctx, &all, client.InNamespace(ns)); err != nil {
				return err
			}
			if len(all.Items) != 1 || len(all.Items[0].Status.Hard) == 0 {
				return fmt.Errorf("quotas: %+v", all.Items)
			}
			return nil
		},
		Delete: func(ctx context.Context, c client.Client, ns string) error {
			if err := mark(nil)(ctx, c, ns); err != nil {
				return err
			}
			return c.DeleteAllOf(ctx, &corev1.ResourceQuota{}, client.InNamespace(ns))
		},
		Timeout: patience,
	}, "crash", "missed", "stale", "quiet", "deleted")
	if err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
