package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// Blocks of addresses: 127.0.0.0/8 is divided into blocks of 4,096. The first 16, 127.0.x.x, are
// left alone, because other programs use them.
const (
	blockBits   = 20
	firstBlock  = 16
	lastBlock   = 1<<(blockBits-8) - 1
	defaultPort = 6443
)

// allocateAddresses gives the cluster a block of loopback addresses, once. The block is recorded with the host's files
// before it appears in the object, so that it cannot be lost in between.
func (r *Reconciler) allocateAddresses(ctx context.Context, s *scope) error {
	uid := string(s.local.UID)
	c, err := r.findRecordedCluster(uid)
	if err != nil {
		return err
	}
	if c == nil {
		if c, err = r.allocateBlock(ctx, s); err != nil {
			return err
		}
	}
	endpoint := clusterv1.APIEndpoint{Host: c.Endpoint().Addr().String(), Port: c.Port}
	if e := s.local.Spec.ControlPlaneEndpoint; e.Host != "" && e != endpoint {
		err := fmt.Errorf("spec.controlPlaneEndpoint is %s:%d, but the cluster has %s:%d; an endpoint is chosen once and cannot be changed", e.Host, e.Port, endpoint.Host, endpoint.Port)
		s.setHostRunning(metav1.ConditionFalse, infrav1.EndpointChangeReason, err.Error())
		return reconcile.Terminal(err)
	}
	s.local.Spec.ControlPlaneEndpoint = endpoint
	s.local.Status.Addresses = c.Addresses.String()
	return nil
}

// allocateBlock chooses a block and records it, one cluster at a time, so that no two choose the same.
func (r *Reconciler) allocateBlock(ctx context.Context, s *scope) (*hostapi.Cluster, error) {
	r.allocationLock.Lock()
	defer r.allocationLock.Unlock()
	c, err := r.chooseBlock(ctx, s.local)
	if err != nil {
		s.setHostRunning(metav1.ConditionFalse, infrav1.NoFreeAddressReason, err.Error())
		return nil, err
	}
	c.Name = s.owner.Name
	if err := r.Hosts.PrepareDir(*c); err != nil {
		s.setHostRunning(metav1.ConditionFalse, infrav1.HostFailedReason, err.Error())
		return nil, err
	}
	return c, nil
}

func (r *Reconciler) findRecordedCluster(uid string) (*hostapi.Cluster, error) {
	all, err := r.Hosts.Clusters()
	for _, c := range all {
		if c.UID == uid {
			return &c, err
		}
	}
	return nil, err
}

// chooseBlock looks for a free block, beginning at a place that depends on the cluster: so two planes on one computer,
// which do not know of each other, rarely even try the same.
func (r *Reconciler) chooseBlock(ctx context.Context, local *infrav1.LocalCluster) (*hostapi.Cluster, error) {
	all, err := r.Hosts.Clusters()
	if err != nil {
		return nil, err
	}
	used := map[netip.Prefix]bool{}
	for _, c := range all {
		used[c.Addresses] = true
	}
	c := &hostapi.Cluster{Namespace: local.Namespace, UID: string(local.UID), Port: defaultPort}
	if p := local.Spec.ControlPlaneEndpoint.Port; p != 0 {
		c.Port = p
	}
	last := errors.New("other clusters have all that were tried")
	for block := range candidateBlocks(string(local.UID)) {
		if used[block] {
			continue
		}
		c.Addresses = block
		if last = checkListenable(ctx, c.Endpoint()); last == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf(
		"no block of loopback addresses is free for the cluster: %w; is port %d taken on all addresses by another program?",
		last, c.Port,
	)
}

// maxCandidates bounds the search: where hundreds of blocks cannot be used, none can.
const maxCandidates = 256

// candidateBlocks yields blocks in the order in which a cluster tries them.
func candidateBlocks(seed string) func(yield func(netip.Prefix) bool) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // never fails
	const n = lastBlock - firstBlock + 1
	return func(yield func(netip.Prefix) bool) {
		for i := range uint32(maxCandidates) {
			index := firstBlock + (h.Sum32()%n+i*61)%n // 61 has no divisor in common with n
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], 127<<24|index<<(32-blockBits))
			if !yield(netip.PrefixFrom(netip.AddrFrom4(b), blockBits)) {
				return
			}
		}
	}
}

// checkListenable opens the endpoint and closes it again: another program may have the port.
func checkListenable(ctx context.Context, endpoint netip.AddrPort) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", endpoint.String())
	if err != nil {
		return err
	}
	return l.Close()
}
