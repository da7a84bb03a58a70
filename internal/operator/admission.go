package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	requestv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	ownadmission "github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/internal/controller/kubeconfigrequest"
	"github.com/polder-kaas/polder/internal/controller/tenant"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

// Paths of the webhooks for stacks and their clusters.
const (
	clusterPath   = "/validate-stack-cluster"
	releasePath   = "/validate-stack-release"
	stackPath     = "/validate-stack"
	namespacePath = "/validate-stack-namespace"
	protectedPath = "/validate-protected"
)

// registerAdmission serves the webhooks and registers them with the API server.
func (o *Operator) registerAdmission(ctx context.Context, mgr ctrl.Manager, providers map[string]*guard.Guard) error {
	decoder := admission.NewDecoder(mgr.GetScheme())
	live, err := o.liveClient("polder-operator-admission")
	if err != nil {
		return err
	}
	customers := &ownadmission.Checker{
		Client: mgr.GetClient(), Live: live, Providers: providers,
		Reservations: &quota.Reservations{Clock: clock.RealClock{}},
	}
	if o.cfg.Quota != nil {
		// Before any WorkloadCluster can be stored: they are counted then.
		o.cfg.Quota.Set(mgr.GetClient(), live)
	}
	for path, handle := range map[string]admission.HandlerFunc{
		clusterPath:   checkCluster(mgr.GetClient(), decoder),
		releasePath:   checkRelease(mgr.GetClient()),
		stackPath:     checkStack(mgr.GetClient()),
		namespacePath: checkNamespace(mgr.GetClient(), o.unreadable.Unreadable, o.cfg.Planes),
		protectedPath: checkProtected(live),

		defaultWorkloadPath:    customers.Mutate,
		validateTenantPath:     (&tenant.Validator{Client: mgr.GetClient(), Decoder: decoder, Planes: o.cfg.Planes}).Handle,
		validateWorkloadPath:   customers.Validate(decoder),
		defaultKubeconfigPath:  kubeconfigrequest.MutatingHandler(decoder),
		validateKubeconfigPath: kubeconfigrequest.ValidatingHandler(live, mgr.GetClient(), decoder),
	} {
		// Not for deletions: whether a cluster is protected may be what cannot be read.
		mending := unreadable.MendOldObject(mgr.GetScheme(), handle, requestv1.Update)
		o.cfg.Webhooks.Server.Register(path, &admission.Webhook{Handler: mending})
	}
	ca, err := o.cfg.Webhooks.CA()
	if err != nil {
		return err
	}
	// Only the plane's own identity may write registrations; the operator's user may not.
	rc := o.cfg.Client("polder-webhook-registration")
	return errors.Join(
		o.cfg.Webhooks.Register(ctx, rc, mutatingWebhooks(o.cfg.Webhooks.URL, ca)),
		o.cfg.Webhooks.Register(ctx, rc, validatingWebhooks(o.cfg.Webhooks.URL, ca)),
	)
}

// validatingWebhooks returns the registration of all webhooks that check.
func validatingWebhooks(url string, ca []byte) *admissionv1.ValidatingWebhookConfiguration {
	newWebhook := func(name, path, group, version, resource string,
		operations ...admissionv1.OperationType) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name:         name + ".clusterstack.x-k8s.io",
			ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To(url + path), CABundle: ca},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: operations,
				Rule: admissionv1.Rule{
					APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
					Scope: ptr.To(admissionv1.NamespacedScope),
				},
			}},
			FailurePolicy:           ptr.To(admissionv1.Fail),
			MatchPolicy:             ptr.To(admissionv1.Equivalent),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](10),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	cluster := newWebhook("cluster", clusterPath, clusterv1.GroupVersion.Group, clusterv1.GroupVersion.Version, "clusters",
		admissionv1.Create, admissionv1.Update)
	// Cluster API writes to Clusters all the time; only their class and version are of interest.
	// An old object of other types than these must not keep anybody from repairing it.
	cluster.MatchConditions = []admissionv1.MatchCondition{
		{Name: "has-class", Expression: "has(object.spec) && has(object.spec.topology) && has(object.spec.topology.classRef)"},
		{Name: "class-or-version-changed",
			Expression: "oldObject == null || !has(oldObject.spec) || !has(oldObject.spec.topology) || oldObject.spec.topology.classRef != object.spec.topology.classRef || oldObject.spec.topology.version != object.spec.topology.version || type(oldObject.spec) != map || type(oldObject.spec.topology) != map"},
	}
	// Deletion of a namespace must be refused as a whole: its objects are deleted one by one, and a refusal then comes
	// too late.
	namespace := newWebhook("namespace", namespacePath, "", "v1", "namespaces", admissionv1.Delete)
	namespace.Rules[0].Scope = ptr.To(admissionv1.ClusterScope)
	workload := newWebhook("workloadcluster", validateWorkloadPath, "", "", "")
	workload.Name = "validate.workloadcluster.polder.dev"
	workload.Rules = []admissionv1.RuleWithOperations{
		polderRule("workloadclusters", admissionv1.Create, admissionv1.Update, admissionv1.Delete),
	}
	request := newWebhook("kubeconfigrequest", validateKubeconfigPath, "", "", "")
	request.Name = "validate.kubeconfigrequest.polder.dev"
	request.Rules = []admissionv1.RuleWithOperations{
		polderRule("kubeconfigrequests", admissionv1.Create, admissionv1.Delete),
	}
	// The operator deletes expired requests.
	request.MatchConditions = []admissionv1.MatchCondition{
		{Name: "not-by-the-operator", Expression: fmt.Sprintf("request.userInfo.username != %q", User)},
	}
	tenants := newWebhook("tenant", validateTenantPath, "", "", "")
	tenants.Name = "validate.tenant.polder.dev"
	tenants.Rules = []admissionv1.RuleWithOperations{
		polderRule("tenants", admissionv1.Create, admissionv1.Update, admissionv1.Delete),
	}
	tenants.Rules[0].Scope = ptr.To(admissionv1.ClusterScope)
	w := &admissionv1.ValidatingWebhookConfiguration{}
	w.Name = "polder-operator"
	w.Webhooks = []admissionv1.ValidatingWebhook{
		cluster,
		exceptMoved(newWebhook("release", releasePath, csv1.GroupVersion.Group, csv1.GroupVersion.Version, "clusterstackreleases",
			admissionv1.Delete)),
		exceptMoved(newWebhook("stack", stackPath, csv1.GroupVersion.Group, csv1.GroupVersion.Version, "clusterstacks",
			admissionv1.Delete)),
		namespace,
		exceptMoved(protectedWebhook(newWebhook("", protectedPath, "", "", ""))),
		exceptMoved(workload),
		request,
		tenants,
	}
	return w
}

// exceptMoved leaves deletions alone that end a move: another plane has the object, and nothing of the cluster itself
// goes.
func exceptMoved(w admissionv1.ValidatingWebhook) admissionv1.ValidatingWebhook {
	w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "not-moved", Expression: fmt.Sprintf(
		"request.operation != 'DELETE' || oldObject == null || !has(oldObject.metadata.annotations) || !(%q in oldObject.metadata.annotations)",
		clusterctlv1.DeleteForMoveAnnotation)})
	return w
}

// checkCluster refuses a Cluster whose class is of a release that does not serve its namespace, or that is for another
// version of Kubernetes. Other Clusters are none of our business.
func checkCluster(c client.Reader, decoder admission.Decoder) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		cluster := &clusterv1.Cluster{}
		if err := decoder.Decode(req, cluster); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		class, ok := lineage.ClassOfCluster(cluster)
		if !ok {
			return admission.Allowed("")
		}
		key, ok := lineage.ReleaseOfClass(class)
		if !ok {
			return admission.Allowed("")
		}
		rel := &csv1.ClusterStackRelease{}
		if err := c.Get(ctx, key, rel); client.IgnoreNotFound(err) != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		// A release that is not found owns no class, so it needs no case of its own.
		owns, err := lineage.OwnsClass(ctx, c, rel, class)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if !owns {
			return checkForeignClass(ctx, c, class, cluster.Namespace)
		}
		stack, err := lineage.StackOfRelease(ctx, c, rel)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		serves, err := lineage.ServesNamespace(ctx, c, stack, rel, cluster.Namespace)
		switch {
		case err != nil:
			return ownadmission.FailureResponse(err)
		case !serves:
			return admission.Denied(
				fmt.Sprintf("spec.topology.classRef: class %s does not serve clusters of namespace %s; its ClusterStack must allow it in spec.allowedNamespaces", class, cluster.Namespace),
			)
		case rel.Status.KubernetesVersion != "" && cluster.Spec.Topology.Version != rel.Status.KubernetesVersion:
			return admission.Denied(
				fmt.Sprintf("spec.topology.version: class %s is made and tested for Kubernetes %s, not %s; write version: %s",
					class, rel.Status.KubernetesVersion, cluster.Spec.Topology.Version, rel.Status.KubernetesVersion),
			)
		}
		return admission.Allowed("")
	}
}

// checkRelease refuses the deletion of a release that clusters use.
func checkRelease(c client.Reader) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		name, err := deletedName(req)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		users, err := lineage.ClustersOfRelease(ctx, c, client.ObjectKey{Namespace: req.Namespace, Name: name})
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if len(users) > 0 {
			return admission.Denied(fmt.Sprintf("the release is used by %s; give them another class, or delete them",
				lineage.ClusterNames(users)))
		}
		return admission.Allowed("")
	}
}

// deletedName returns the name of the object that is to be deleted. If all of a kind are deleted at once, the API
// server asks about each, and only the old object has its name.
func deletedName(req admission.Request) (string, error) {
	if req.Name != "" {
		return req.Name, nil
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.OldObject.Raw, &o); err != nil {
		return "", fmt.Errorf("reading what is to be deleted: %w", err)
	}
	if o.Name == "" {
		return "", errors.New("what is to be deleted has no name")
	}
	return o.Name, nil
}

// checkStack refuses the deletion of a stack with a release that clusters use.
func checkStack(c client.Reader) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		// Its metadata alone: a stack that cannot be read can be deleted, too.
		s := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(req.OldObject.Raw, s); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		var l csv1.ClusterStackReleaseList
		if err := c.List(ctx, &l, client.InNamespace(req.Namespace)); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		var users []clusterv1.Cluster
		for i := range l.Items {
			owner, err := lineage.StackOfRelease(ctx, c, &l.Items[i])
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			if owner == nil || owner.UID != s.UID {
				continue
			}
			more, err := lineage.ClustersOfRelease(ctx, c, client.ObjectKeyFromObject(&l.Items[i]))
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			users = append(users, more...)
		}
		if len(users) > 0 {
			return admission.Denied(fmt.Sprintf("releases of the stack are used by %s; give them another class, or delete them",
				lineage.ClusterNames(users)))
		}
		return admission.Allowed("")
	}
}
