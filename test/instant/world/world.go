// Package world has the workload clusters of the instant provider: their Kubernetes APIs, in memory, behind one
// listener. Each cluster has a loopback address of its own, by which the listener tells them apart, so that an
// endpoint of a host and a port is all that is needed to reach one.
//
// It is for tests. Whoever has a certificate of a cluster's CA may do everything there, and what is stored
// is gone with the process.
package world

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// World has all clusters. It may be used by many goroutines.
type World struct {
	listening chan struct{} // closes once the port is known
	port      int32

	mu           sync.RWMutex
	clusters     map[types.NamespacedName]*cluster
	addresses    map[netip.Addr]*cluster
	nodeClusters map[types.NamespacedName]types.NamespacedName // of nodes: their clusters
	nextAddress  netip.Addr
	silent       silence
}

// cluster is one workload cluster.
type cluster struct {
	name      types.NamespacedName
	address   netip.Addr // zero: it has none yet
	tlsConfig *tls.Config
	store     *store
}

// firstAddress is the address of the first cluster: far from those that other programs like.
var firstAddress = netip.AddrFrom4([4]byte{127, 90, 0, 1})

// New makes an empty world; Run serves it.
func New() *World {
	return &World{
		listening: make(chan struct{}),
		clusters:  map[types.NamespacedName]*cluster{}, addresses: map[netip.Addr]*cluster{},
		nodeClusters: map[types.NamespacedName]types.NamespacedName{}, nextAddress: firstAddress,
	}
}

// Endpoint is where a cluster is, or will be once Serve was called for it. The address that a process before this one
// gave it is kept; the zero address asks for a new one. It waits for the listener.
func (w *World) Endpoint(ctx context.Context, name types.NamespacedName, previous netip.Addr) (netip.AddrPort, error) {
	select {
	case <-w.listening:
	case <-ctx.Done():
		return netip.AddrPort{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.getOrCreateCluster(name)
	if !c.address.IsValid() {
		if err := w.assignAddress(c, previous); err != nil {
			return netip.AddrPort{}, err
		}
	}
	return netip.AddrPortFrom(c.address, uint16(w.port)), nil
}

// assignAddress gives a cluster the address, or the next free one.
func (w *World) assignAddress(c *cluster, address netip.Addr) error {
	switch {
	case !address.IsValid():
		for address = w.nextAddress; w.addresses[address] != nil || address.As4()[3] == 0 || address.As4()[3] == 255; {
			address = address.Next()
		}
		w.nextAddress = address.Next()
	case !address.IsLoopback() || !address.Is4():
		return fmt.Errorf("%s is no address of this machine's own", address)
	case w.addresses[address] != nil:
		return fmt.Errorf("the address %s is another cluster's", address)
	}
	c.address, w.addresses[address] = address, c
	return nil
}

// getOrCreateCluster returns the cluster of a name, and makes it if need be. The lock must be held.
func (w *World) getOrCreateCluster(name types.NamespacedName) *cluster {
	c := w.clusters[name]
	if c == nil {
		c = &cluster{name: name, store: newStore()}
		w.clusters[name] = c
	}
	return c
}

// IsServing says that a cluster answers.
func (w *World) IsServing(name types.NamespacedName) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	c := w.clusters[name]
	return c != nil && c.tlsConfig != nil
}

// Serve makes a cluster answer, with certificates of its CA. It must have been asked for its Endpoint before.
func (w *World) Serve(name types.NamespacedName, ca *Authority) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.getOrCreateCluster(name)
	if c.tlsConfig != nil {
		return nil
	}
	if !c.address.IsValid() {
		return fmt.Errorf("cluster %s has no address yet", name)
	}
	var err error
	c.tlsConfig, err = ca.serverTLSConfig(c.address)
	return err
}

// DeleteCluster drops a cluster that is gone, with all it has.
func (w *World) DeleteCluster(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clusters[name]
	if c == nil {
		return
	}
	c.store.close()
	delete(w.clusters, name)
	delete(w.addresses, c.address)
}

// ClusterCount is how many clusters of a namespace there are.
func (w *World) ClusterCount(namespace string) int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := 0
	for name := range w.clusters {
		if name.Namespace == namespace {
			n++
		}
	}
	return n
}

// clusterAt is the cluster that a client has connected to; nil: none that answers.
func (w *World) clusterAt(local net.Addr) *cluster {
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	c := w.addresses[tcp.AddrPort().Addr().Unmap()]
	if c == nil || c.tlsConfig == nil {
		return nil
	}
	return c
}
