package kubecontrollers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/polder-kaas/polder/internal/plane/quotaevaluator"
)

// Numbers of workers: enough for thousands of objects, since everything is in process.
const (
	gcWorkers        = 5
	namespaceWorkers = 5
	otherWorkers     = 2
)

func newGarbageCollector(ctx context.Context, s *dependencies) ([]runFunc, error) {
	client, err := s.client("garbage-collector")
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, s.metadata, s.mapper,
		garbagecollector.DefaultIgnoredResources(), s.objects, s.started)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, s.metadata, s.mapper, graph)
	if err != nil {
		return nil, err
	}
	return []runFunc{
		func(ctx context.Context) { gc.Run(ctx, gcWorkers, 30*time.Second) },
		func(ctx context.Context) { gc.Sync(ctx, client.Discovery(), discoveryInterval) },
	}, nil
}

func newNamespaceController(ctx context.Context, s *dependencies) ([]runFunc, error) {
	client, err := s.client("namespace-controller")
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(ctx, client, s.metadata, client.Discovery().ServerPreferredNamespacedResources,
		s.typed.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return []runFunc{func(ctx context.Context) { c.Run(ctx, namespaceWorkers) }}, nil
}

// newServiceAccountControllers returns the controllers that create the default account of each namespace and fill
// token Secrets. The cleaner of old tokens is left out: it needs pods.
func newServiceAccountControllers(ctx context.Context, s *dependencies) ([]runFunc, error) {
	client, err := s.client("service-accounts")
	if err != nil {
		return nil, err
	}
	core := s.typed.Core().V1()
	log := klog.FromContext(ctx)
	accounts, err := serviceaccountcontroller.NewServiceAccountsController(log, core.ServiceAccounts(), core.Namespaces(),
		client, serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(s.cfg.SAKey)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	ca, err := s.cfg.RootCA()
	if err != nil {
		return nil, err
	}
	tokens, err := serviceaccountcontroller.NewTokensController(log, core.ServiceAccounts(), core.Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
	if err != nil {
		return nil, err
	}
	return []runFunc{
		func(ctx context.Context) { accounts.Run(ctx, 1) },
		func(ctx context.Context) { tokens.Run(ctx, otherWorkers) },
	}, nil
}

func newClusterRoleAggregation(_ context.Context, s *dependencies) ([]runFunc, error) {
	client, err := s.client("cluster-role-aggregation")
	if err != nil {
		return nil, err
	}
	c := clusterroleaggregation.NewClusterRoleAggregation(s.typed.Rbac().V1().ClusterRoles(), client.RbacV1())
	return []runFunc{func(ctx context.Context) { c.Run(ctx, otherWorkers) }}, nil
}

// recountPeriod is how often all quotas are counted anew. Kubernetes does it every five minutes. A deletion that is
// seen before the API server's own count of what is deleted counts for nothing until then: the controller finds the
// number that it remembers, and writes nothing. Whoever deletes a cluster would wait that long before they can make
// another. Counting is done in memory.
const recountPeriod = 30 * time.Second

// newQuotaController returns the controller that counts objects. The evaluators for pods, volumes and devices are
// left out: they need informers for kinds that this API does not have.
func newQuotaController(ctx context.Context, s *dependencies) ([]runFunc, error) {
	client, err := s.client("resource-quota")
	if err != nil {
		return nil, err
	}
	lister := quotageneric.ListerFuncForResourceFunc(s.objects.ForResource)
	clusters := quotaevaluator.New(s.cfg.Quota, quotageneric.ListResourceUsingListerFunc(lister, quotaevaluator.Resource))
	conf := quotageneric.NewConfiguration([]quota.Evaluator{clusters}, quotainstall.DefaultIgnoredResources())
	discover := client.Discovery().ServerPreferredNamespacedResources
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     s.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(recountPeriod),
		InformerFactory:           s.objects,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resyncPeriod),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      conf.IgnoredResources,
		InformersStarted:          s.started,
		Registry:                  quotageneric.NewRegistry(conf.Evaluators()),
		UpdateFilter:              asksForOther,
	})
	if err != nil {
		return nil, err
	}
	return []runFunc{
		func(ctx context.Context) {
			s.cfg.Quota.Await(ctx, operatorTime) // each quota would be tried in vain until then
			c.Run(ctx, otherWorkers)
		},
		func(ctx context.Context) { c.Sync(ctx, discover, discoveryInterval) },
	}, nil
}

// operatorTime is how long quotas wait at the start for the operator, which knows what clusters ask for.
const operatorTime = 10 * time.Second

// asksForOther reports whether an update may set something of a quota free: a cluster that asks for less.
func asksForOther(kind schema.GroupVersionResource, was, is any) bool {
	a, err := meta.Accessor(was)
	b, err2 := meta.Accessor(is)
	return kind.GroupResource() == quotaevaluator.Resource.GroupResource() && err == nil && err2 == nil &&
		a.GetGeneration() != b.GetGeneration()
}
