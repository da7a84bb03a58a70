package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	registry "k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// serverName names the server in its own logs and metrics.
const serverName = "polder"

// apiServers is the number of API servers on the store. With more than one, every new CRD
// would wait five seconds for the others before it is established.
const apiServers = 1

// configs are those of the three servers in the chain: built-in kinds, custom resources, aggregation.
type configs struct {
	plane      *controlplaneapiserver.Config
	extensions *apiextensionsapiserver.Config
	aggregator *aggregatorapiserver.Config
}

// servers are the first and the last server of the chain.
type servers struct {
	aggregator *aggregatorapiserver.APIAggregator
	extensions *apiextensionsapiserver.CustomResourceDefinitions
}

// build makes the chain: aggregator in front, then built-in kinds, then custom resources.
func (a *APIServer) build() (*servers, error) {
	p := <-a.configured
	if p.err != nil {
		return nil, p.err
	}
	cs := p.configs
	a.loopback = cs.plane.Generic.LoopbackClientConfig
	a.informers = cs.plane.VersionedInformers

	notFound := notfoundhandler.New(cs.plane.Generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	extensions, err := cs.extensions.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, fmt.Errorf("making the server of custom resources: %w", err)
	}
	completed := cs.plane.Complete()
	native, err := completed.New(serverName, extensions.GenericAPIServer)
	if err != nil {
		return nil, fmt.Errorf("making the server of built-in kinds: %w", err)
	}
	client, err := kubernetes.NewForConfig(a.loopback)
	if err != nil {
		return nil, err
	}
	storage, err := completed.GenericStorageProviders(client.Discovery())
	if err != nil {
		return nil, fmt.Errorf("opening storage: %w", err)
	}
	if err := native.InstallAPIs(storage...); err != nil {
		return nil, fmt.Errorf("installing built-in kinds: %w", err)
	}
	crds := extensions.Informers.Apiextensions().V1().CustomResourceDefinitions()
	crdsServed := cs.extensions.GenericConfig.MergedResourceConfig.ResourceEnabled(
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"),
	)
	aggregator, err := controlplaneapiserver.CreateAggregatorServer(cs.aggregator.Complete(), native.GenericAPIServer,
		crds, crdsServed, controlplaneapiserver.DefaultGenericAPIServicePriorities())
	if err != nil {
		return nil, fmt.Errorf("making the aggregator: %w", err)
	}
	return &servers{aggregator, extensions}, a.addChecksAndHandlers(aggregator.GenericAPIServer)
}

func (a *APIServer) configure(ctx context.Context) (configs, error) {
	var cs configs
	opts, err := a.cfg.completeOptions(ctx)
	if err != nil {
		return cs, err
	}
	generic, informers, storage, err := controlplaneapiserver.BuildGenericConfig(opts,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme},
		controlplane.DefaultGenericAPIResourceConfigSource(), openAPIDefinitions, nil)
	if err != nil {
		return cs, fmt.Errorf("configuring: %w", err)
	}
	services := webhook.NewDefaultServiceResolver()
	own := webhookInitializer{a.newWebhookResolver(generic)}
	plane, initializers, err := controlplaneapiserver.CreateConfig(opts, generic, informers, nil, storage, services,
		[]admission.PluginInitializer{own, quotaInitializer{a.cfg.Quota}})
	if err != nil {
		return cs, fmt.Errorf("configuring built-in kinds: %w", err)
	}
	extensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*plane.Generic, plane.VersionedInformers,
		initializers, opts, apiServers, services, own.wrapper)
	if err != nil {
		return cs, fmt.Errorf("configuring custom resources: %w", err)
	}
	if !a.cfg.WatchCache {
		// The cache holds every change of the last minutes decoded; for custom resources, whose
		// few watchers are in this process, that would be the larger part of the memory.
		store := *opts.Etcd
		store.EnableWatchCache = false
		extensions.ExtraConfig.CRDRESTOptionsGetter = &selectiveWatchCache{
			cached: extensions.ExtraConfig.CRDRESTOptionsGetter,
			uncached: apiextensionsoptions.NewCRDRESTOptionsGetter(store, generic.ResourceTransformers,
				generic.StorageObjectCountTracker),
		}
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*plane.Generic, opts, plane.VersionedInformers,
		services, plane.ProxyTransport, plane.PeerProxy, initializers)
	if err != nil {
		return cs, fmt.Errorf("configuring aggregation: %w", err)
	}
	// There are no Services here to aggregate from, only our own groups.
	aggregator.ExtraConfig.DisableRemoteAvailableConditionController = true
	// The aggregator is in front.
	holdUntilAuthSynced(&aggregator.GenericConfig.Config, plane.VersionedInformers, a.cfg.Warnings,
		a.newRoute(plane.VersionedInformers, generic.LoopbackClientConfig))
	return configs{plane: plane, extensions: extensions, aggregator: aggregator}, nil
}

// newRoute returns what stands before all that the API server serves itself, behind authentication and authorisation.
func (a *APIServer) newRoute(f informers.SharedInformerFactory, loopback *rest.Config) func(http.Handler) http.Handler {
	namespaces := f.Core().V1().Namespaces()
	cached := namespaces.Lister()
	live := sync.OnceValues(func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(loopback) })
	get := func(ctx context.Context, name string) (*corev1.Namespace, error) {
		ns, err := cached.Get(name)
		if !apierrors.IsNotFound(err) {
			return ns, err
		}
		c, err := live() // the cache may not have it yet
		if err != nil {
			return nil, err
		}
		return c.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	}
	return func(next http.Handler) http.Handler { return a.cfg.Route(next, get) }
}

// selectiveWatchCache gives a watch cache to some custom resources only: those that customers list. There can be
// hundreds of them, and without it each list would read and decode them all.
type selectiveWatchCache struct{ cached, uncached registry.RESTOptionsGetter }

// cachedResource is the kind that customers list (docs/adr/0005).
var cachedResource = schema.GroupResource{Group: "polder.dev", Resource: "workloadclusters"}

// GetRESTOptions implements registry.RESTOptionsGetter.
func (f *selectiveWatchCache) GetRESTOptions(resource schema.GroupResource,
	example runtime.Object) (registry.RESTOptions, error) {
	if resource == cachedResource {
		return f.cached.GetRESTOptions(resource, example)
	}
	return f.uncached.GetRESTOptions(resource, example)
}

// addChecksAndHandlers adds the plane's own checks and paths to the outermost server.
func (a *APIServer) addChecksAndHandlers(s *genericapiserver.GenericAPIServer) error {
	for _, c := range a.cfg.Checks {
		check := healthz.NamedCheck(c.Name, func(r *http.Request) error { return c.Check(r.Context()) })
		if err := s.AddReadyzChecks(check); err != nil {
			return fmt.Errorf("adding check %s: %w", c.Name, err)
		}
	}
	for path, h := range a.cfg.Handlers {
		if strings.HasSuffix(path, "/") {
			s.Handler.NonGoRestfulMux.HandlePrefix(path, h)
			continue
		}
		s.Handler.NonGoRestfulMux.Handle(path, h)
	}
	return nil
}
