package workload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster gives access to a workload cluster.
type Cluster struct {
	Client client.Client // not cached
	api    rest.Interface
}

// Clusters gives access to workload clusters. It is a Runnable of a manager: while it runs, requests to clusters that
// do not answer fail at once.
type Clusters struct {
	Secrets   client.Reader // not cached: Secrets are read by name
	UserAgent string        // of our requests to the clusters
	// WrapTransport wraps the transport to each cluster, which limits responses; nil means that nothing does.
	WrapTransport transport.WrapperFunc

	mu    sync.Mutex
	cache map[client.ObjectKey]cachedCluster

	once    sync.Once
	breaker *breaker // see circuits
}

type cachedCluster struct {
	kubeconfigSum [sha256.Size]byte // of the kubeconfig the client was made from
	cluster       *Cluster
}

// Start asks clusters that kept a request waiting for a sign of life, until ctx ends.
func (c *Clusters) Start(ctx context.Context) error { return c.circuits().run(ctx) }

func (c *Clusters) circuits() *breaker {
	c.once.Do(func() { c.breaker = newBreaker(c.Readiness, clock.RealClock{}) })
	return c.breaker
}

// Get gives access to a cluster, by the kubeconfig in its Secret as it is now. The error is an UnreachableError if the
// cluster is known not to answer.
func (c *Clusters) Get(ctx context.Context, cluster client.ObjectKey) (*Cluster, error) {
	if err := c.circuits().check(cluster); err != nil {
		return nil, err
	}
	kubeconfig, err := c.readKubeconfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(kubeconfig)
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.cache[cluster]; ok && k.kubeconfigSum == sum {
		return k.cluster, nil
	}
	made, err := c.connect(cluster, kubeconfig, c.circuits().wrapTransport(cluster))
	if err != nil {
		return nil, err
	}
	if c.cache == nil {
		c.cache = map[client.ObjectKey]cachedCluster{}
	}
	c.cache[cluster] = cachedCluster{kubeconfigSum: sum, cluster: made}
	return made, nil
}

func kubeconfigSecret(cluster client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
}

func (c *Clusters) readKubeconfig(ctx context.Context, cluster client.ObjectKey) ([]byte, error) {
	var s corev1.Secret
	if err := c.Secrets.Get(ctx, kubeconfigSecret(cluster), &s); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", cluster, err)
	}
	return s.Data["value"], nil
}

// connect makes clients for a cluster, whose requests go through outer first.
func (c *Clusters) connect(cluster client.ObjectKey, kubeconfig []byte, outer transport.WrapperFunc) (*Cluster, error) {
	cfg, err := RESTConfigFromKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", kubeconfigSecret(cluster).Name, cluster, err)
	}
	cfg.UserAgent, cfg.WrapTransport = c.UserAgent, transport.Wrappers(limitTransport, c.WrapTransport, outer)
	cfg.DisableCompression = true                     // few bytes could become many
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // a cluster must not write to our log
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", kubeconfigSecret(cluster).Name, cluster, err)
	}
	made, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme(), Mapper: NewRESTMapper(d.RESTClient())})
	if err != nil {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", kubeconfigSecret(cluster).Name, cluster, err)
	}
	return &Cluster{Client: made, api: d.RESTClient()}, nil
}

// Forget drops the client of a cluster that is gone.
func (c *Clusters) Forget(cluster client.ObjectKey) {
	c.circuits().forget(cluster)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cache, cluster)
}
