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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster gives access to a workload cluster.
type Cluster struct {
	Client client.Client // not cached
	api    rest.Interface
}

// Clusters gives access to workload clusters.
type Clusters struct {
	Secrets   client.Reader // not cached: Secrets are read by name
	UserAgent string        // of our requests to the clusters
	// WrapTransport wraps the transport to each cluster, which limits responses; nil means that nothing does.
	WrapTransport transport.WrapperFunc

	mu    sync.Mutex
	cache map[client.ObjectKey]cachedCluster
}

type cachedCluster struct {
	kubeconfigSum [sha256.Size]byte // of the kubeconfig the client was made from
	cluster       *Cluster
}

// Get gives access to a cluster, by the kubeconfig in its Secret as it is now.
func (c *Clusters) Get(ctx context.Context, cluster client.ObjectKey) (*Cluster, error) {
	var s corev1.Secret
	name := cluster.Name + "-kubeconfig"
	if err := c.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", cluster, err)
	}
	sum := sha256.Sum256(s.Data["value"])
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.cache[cluster]; ok && k.kubeconfigSum == sum {
		return k.cluster, nil
	}
	cfg, err := RESTConfigFromKubeconfig(s.Data["value"])
	if err != nil {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", name, cluster, err)
	}
	cfg.UserAgent, cfg.WrapTransport = c.UserAgent, transport.Wrappers(limitTransport, c.WrapTransport)
	cfg.DisableCompression = true                     // few bytes could become many
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // a cluster must not write to our log
	made, err := connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", name, cluster, err)
	}
	if c.cache == nil {
		c.cache = map[client.ObjectKey]cachedCluster{}
	}
	c.cache[cluster] = cachedCluster{kubeconfigSum: sum, cluster: made}
	return made, nil
}

func connect(cfg *rest.Config) (*Cluster, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme(), Mapper: NewRESTMapper(d.RESTClient())})
	return &Cluster{Client: c, api: d.RESTClient()}, err
}

// Forget drops the client of a cluster that is gone.
func (c *Clusters) Forget(cluster client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cache, cluster)
}
