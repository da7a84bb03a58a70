package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

// setupProviderWebhooks registers the admission webhooks of providers that run in processes of their own. They must not
// register them themselves: whoever may do that may listen to everything that is written in the plane.
func (o *Operator) setupProviderWebhooks(mgr ctrl.Manager) error {
	registrations, err := client.New(o.cfg.Client("polder-webhook-registration"), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider").
		For(&v1alpha1.Provider{}).
		WithEventFilter(predicate.Funcs{UpdateFunc: admissionEndpointChanged}).
		WithOptions(controllerOptions(1)).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			p := &v1alpha1.Provider{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, p); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if !p.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, nil // its registration is garbage-collected with it
			}
			if p.Status.Admission == nil {
				return ctrl.Result{}, deleteProviderWebhook(ctx, registrations, p)
			}
			return ctrl.Result{}, o.cfg.Webhooks.Register(ctx, o.cfg.Client("polder-webhook-registration"), providerWebhook(p))
		}))
}

// deleteProviderWebhook deletes the registration of a provider that runs in the plane's process now: nobody answers at
// the old URL, and its clusters could not be changed. A registration that is not ours is left alone.
func deleteProviderWebhook(ctx context.Context, c client.Client, p *v1alpha1.Provider) error {
	w := &admissionv1.ValidatingWebhookConfiguration{}
	const resource = "validatingwebhookconfigurations"
	if err := c.Get(ctx, client.ObjectKey{Name: providerWebhookName(p)}, w); err != nil {
		return apierror.IgnoreObjectNotFound(err, resource, providerWebhookName(p))
	}
	// The UID may be that of an earlier Provider of the same name, so the name decides.
	if !slices.ContainsFunc(w.OwnerReferences,
		func(r metav1.OwnerReference) bool { return r.Kind == "Provider" && r.Name == p.Name }) {
		return nil
	}
	return apierror.IgnoreObjectNotFound(c.Delete(ctx, w, client.Preconditions{UID: &w.UID}), resource, w.Name)
}

// providerWebhookName returns the name of a provider's registration.
func providerWebhookName(p *v1alpha1.Provider) string { return "polder-provider-" + p.Name }

// providerWebhook returns the registration of a provider's webhook. It is owned by its Provider.
func providerWebhook(p *v1alpha1.Provider) *admissionv1.ValidatingWebhookConfiguration {
	w := &admissionv1.ValidatingWebhookConfiguration{}
	w.Name = providerWebhookName(p)
	w.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provider", Name: p.Name, UID: p.UID},
	}
	// Deletion is not asked about: without the provider, nobody could delete its clusters.
	w.Webhooks = []admissionv1.ValidatingWebhook{{
		Name: p.Name + ".provider.polder.dev",
		ClientConfig: admissionv1.WebhookClientConfig{
			URL: ptr.To(p.Status.Admission.URL), CABundle: []byte(p.Status.Admission.CABundle),
		},
		Rules: []admissionv1.RuleWithOperations{
			polderRule("workloadclusters", admissionv1.Create, admissionv1.Update),
		},
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "names-this-provider", Expression: fmt.Sprintf("has(object.spec.provider) && object.spec.provider == %q",
				p.Name)},
			{Name: "concerns-the-provider",
				// A spec that is none must not keep anybody from repairing it.
				Expression: "oldObject == null || !has(oldObject.spec) || type(oldObject.spec) != map || " +
					specFieldsChanged("stack", "controlPlane", "workers", "network", "oidc", "parameters")},
		},
		FailurePolicy:           ptr.To(admissionv1.Fail),
		MatchPolicy:             ptr.To(admissionv1.Equivalent),
		SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](10),
		AdmissionReviewVersions: []string{"v1"},
	}}
	return w
}

// admissionEndpointChanged passes updates of Providers whose webhook changed. Heartbeats, which are most updates, are
// dropped.
func admissionEndpointChanged(e event.UpdateEvent) bool {
	a, ok := e.ObjectOld.(*v1alpha1.Provider)
	b, ok2 := e.ObjectNew.(*v1alpha1.Provider)
	return ok && ok2 && !equality.Semantic.DeepEqual(a.Status.Admission, b.Status.Admission)
}

// specFieldsChanged returns an expression that is true if one of these fields of the spec has changed. Others, such as
// protection from deletion, must be possible while the provider is away.
func specFieldsChanged(fields ...string) string {
	var out []string
	for _, f := range fields {
		out = append(out, fmt.Sprintf("has(object.spec.%[1]s) != has(oldObject.spec.%[1]s) || has(object.spec.%[1]s) && object.spec.%[1]s != oldObject.spec.%[1]s", f))
	}
	return strings.Join(out, " || ")
}
