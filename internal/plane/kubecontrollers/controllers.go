// Package kubecontrollers runs those of Kubernetes' own controllers that an API without pods
// needs: garbage collection, namespace deletion, quota, service accounts and their tokens, and
// the aggregation of cluster roles.
package kubecontrollers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"

	"github.com/polder-kaas/polder/internal/plane/quotaevaluator"
)

// discoveryInterval is how soon garbage collection and quota notice a new kind.
const discoveryInterval = 5 * time.Second

// resyncPeriod is how often informers deliver all objects again.
const resyncPeriod = 12 * time.Hour

// Config says what the controllers run on. All fields are needed.
type Config struct {
	Client    func(userAgent string) *rest.Config
	Informers func() informers.SharedInformerFactory
	SAKey     string                 // file with the key that signs service-account tokens
	RootCA    func() ([]byte, error) // authority that token Secrets tell their users to trust
	Quota     *quotaevaluator.Source // where quotas read what clusters ask for
}

// Controllers are all of them as one component of the plane.
type Controllers struct {
	cfg   Config
	ready chan struct{}
}

// New prepares the component.
func New(cfg Config) *Controllers { return &Controllers{cfg: cfg, ready: make(chan struct{})} }

// Name is the component's name.
func (c *Controllers) Name() string { return "kube-controllers" }

// Ready closes when all controllers run and their caches are synced.
func (c *Controllers) Ready() <-chan struct{} { return c.ready }

// runFunc is one loop of a controller; it returns when its context ends.
type runFunc func(ctx context.Context)

// dependencies are what the controllers have in common.
type dependencies struct {
	cfg      Config
	typed    informers.SharedInformerFactory
	metadata metadata.Interface
	objects  metadataInformers
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	started  chan struct{} // closes when the informers have been started
}

// Run runs all controllers until ctx ends.
func (c *Controllers) Run(ctx context.Context) error {
	s, err := newDependencies(c.cfg)
	if err != nil {
		return fmt.Errorf("setting up controllers: %w", err)
	}
	var loops []runFunc
	for _, newController := range []func(context.Context, *dependencies) ([]runFunc, error){
		newGarbageCollector, newNamespaceController, newServiceAccountControllers, newClusterRoleAggregation,
		newQuotaController,
	} {
		fs, err := newController(ctx, s)
		if err != nil {
			return fmt.Errorf("setting up controllers: %w", err)
		}
		loops = append(loops, fs...)
	}
	loops = append(loops, func(ctx context.Context) {
		wait.UntilWithContext(ctx, func(context.Context) { s.mapper.Reset() }, discoveryInterval)
	})

	// Informers are started only now: the constructors have registered the kinds they need.
	s.typed.Start(ctx.Done())
	s.objects.Start(ctx.Done())
	close(s.started)
	var wg sync.WaitGroup
	for _, loop := range loops {
		wg.Go(func() { loop(ctx) })
	}
	wg.Go(func() {
		s.typed.WaitForCacheSync(ctx.Done())
		if ctx.Err() == nil {
			close(c.ready)
		}
	})
	wg.Wait()
	return nil
}

func newDependencies(cfg Config) (*dependencies, error) {
	md, err := metadata.NewForConfig(metadata.ConfigFor(cfg.Client("polder-metadata")))
	if err != nil {
		return nil, err
	}
	discovery, err := kubernetes.NewForConfig(cfg.Client("polder-discovery"))
	if err != nil {
		return nil, err
	}
	return &dependencies{
		cfg:      cfg,
		typed:    cfg.Informers(),
		metadata: md,
		objects: metadataInformers{
			metadatainformer.NewSharedInformerFactoryWithOptions(md, resyncPeriod,
				metadatainformer.WithTransform(dropManagedFields)),
		},
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.Discovery())),
		started: make(chan struct{}),
	}, nil
}

func (s *dependencies) client(name string) (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(s.cfg.Client("polder-" + name))
}

// metadataInformers watches every kind by its metadata only. Garbage collection and quota need
// no more, and whole objects of every kind would be the larger part of the plane's memory.
type metadataInformers struct {
	metadatainformer.SharedInformerFactory
}

var _ informerfactory.InformerFactory = metadataInformers{}

func (m metadataInformers) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.SharedInformerFactory.ForResource(r), nil
}

func dropManagedFields(o any) (any, error) {
	if a, err := meta.Accessor(o); err == nil {
		a.SetManagedFields(nil)
	}
	return o, nil
}
