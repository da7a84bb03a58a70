package operator

import (
	"context"
	"errors"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/workloadcluster"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
	"github.com/polder-kaas/polder/internal/workload"
	"github.com/polder-kaas/polder/internal/workload/probe"
	"github.com/polder-kaas/polder/provider"
)

// ProviderTimeout is how long one call to a provider may take. Admission waits for it, so it is shorter than the
// time-out of webhooks.
const ProviderTimeout = 5 * time.Second

// GuardProviders wraps providers so that they are safe to call, by their names. A provider that cannot describe itself
// is left out, with an error that says why; the others do not depend on it.
func GuardProviders(ctx context.Context, providers []provider.Provider) (map[string]*guard.Guard, error) {
	out := map[string]*guard.Guard{}
	var errs []error
	for _, p := range providers {
		g, err := guard.New(ctx, p, ProviderTimeout)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[g.Name()] = g
	}
	return out, errors.Join(errs...)
}

// SetupProvider registers with a manager what one provider needs: the controller of the WorkloadClusters that name it,
// and the heartbeat of its Provider object. Several providers can be set up side by side, in one process or in several.
func SetupProvider(mgr ctrl.Manager, live client.Client, k heartbeat.Publisher, concurrency int) error {
	if err := SetupController(mgr, live, k.Provider, concurrency); err != nil {
		return err
	}
	k.Client, k.Clock = live, clock.RealClock{}
	return mgr.Add(&k)
}

// SetupController registers the controller of a provider's WorkloadClusters alone.
func SetupController(mgr ctrl.Manager, live client.Client, g *guard.Guard, concurrency int) error {
	clusters := &workload.Clusters{Secrets: live, UserAgent: "polder-provider-" + g.Name()}
	prober := probe.New(clusters.Readiness, clock.RealClock{})
	if err := mgr.Add(prober); err != nil {
		return err
	}
	r := &workloadcluster.Reconciler{
		Client: mgr.GetClient(), Live: live, Provider: g, Clock: clock.RealClock{}, Prober: prober,
		Events: mgr.GetEventRecorder("polder-provider-" + g.Name()),
	}
	return r.SetupWithManager(mgr, controllerOptions(concurrency))
}

// Paths of the webhooks for WorkloadClusters, KubeconfigRequests and Tenants.
const (
	defaultWorkloadPath    = "/default-workloadcluster"
	validateWorkloadPath   = "/validate-workloadcluster"
	defaultKubeconfigPath  = "/default-kubeconfigrequest"
	validateKubeconfigPath = "/validate-kubeconfigrequest"
	validateTenantPath     = "/validate-tenant"
)

// mutatingWebhooks returns the registration of all webhooks that set defaults.
func mutatingWebhooks(url string, ca []byte) *admissionv1.MutatingWebhookConfiguration {
	newWebhook := func(name, path string, rule admissionv1.RuleWithOperations) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{
			Name:                    name,
			ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To(url + path), CABundle: ca},
			Rules:                   []admissionv1.RuleWithOperations{rule},
			FailurePolicy:           ptr.To(admissionv1.Fail),
			MatchPolicy:             ptr.To(admissionv1.Equivalent),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](10),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      ptr.To(admissionv1.NeverReinvocationPolicy),
		}
	}
	w := &admissionv1.MutatingWebhookConfiguration{}
	w.Name = "polder-operator"
	w.Webhooks = []admissionv1.MutatingWebhook{
		newWebhook("default.workloadcluster.polder.dev", defaultWorkloadPath,
			polderRule("workloadclusters", admissionv1.Create, admissionv1.Update)),
		newWebhook("default.kubeconfigrequest.polder.dev", defaultKubeconfigPath,
			polderRule("kubeconfigrequests", admissionv1.Create)),
	}
	return w
}

// polderRule returns a webhook rule for one of our own kinds.
func polderRule(resource string, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version},
			Resources: []string{resource}, Scope: ptr.To(admissionv1.NamespacedScope),
		},
	}
}
