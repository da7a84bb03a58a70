package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/polder-kaas/polder/internal/providers/local/partition"
)

// IsPartitioned says that the machine is cut off from the network.
func (k *Kubelet) IsPartitioned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.partitioned
}

// SetPartitioned cuts the machine off from the network, or connects it again: nobody reaches its API server and its
// kubelet, they reach nobody, and its etcd and the others lose each other. Its processes run on.
func (k *Kubelet) SetPartitioned(on bool) error {
	if err := partition.Mark(k.cfg.Dir.RootFS(), on); err != nil {
		return err
	}
	k.mu.Lock()
	changed := k.partitioned != on
	k.partitioned = on
	if changed {
		close(k.reconnect)
		k.reconnect = make(chan struct{})
		// What could not be reached, or could not be reached from elsewhere, is no problem of its own.
		delete(k.problems, "kubelet endpoint")
		delete(k.problems, "node")
	}
	k.mu.Unlock()
	err := k.pods.signalEtcd()
	k.cfg.OnChange()
	return err
}

// runWhileConnected runs what needs the network, again and again, whenever the machine is connected.
func (k *Kubelet) runWhileConnected(ctx context.Context) {
	for ctx.Err() == nil {
		k.mu.Lock()
		partitioned, changed := k.partitioned, k.reconnect
		k.mu.Unlock()
		connected, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		if partitioned {
			wg.Go(func() { k.endHeartbeats(connected) })
		} else {
			wg.Go(func() { k.runWithRetry(connected, "kubelet endpoint", k.serve) })
			wg.Go(func() { k.runWithRetry(connected, "node", k.syncNode) })
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
		cancel()
		wg.Wait()
	}
}

// endHeartbeats makes the simulation, which is not on the machine, end the heartbeats of its node. The cluster may be
// without API for a while, when the machine had the leader of its store.
func (k *Kubelet) endHeartbeats(ctx context.Context) {
	retry := newBackoff()
	for {
		err := k.removeRunningLabel(ctx)
		if err == nil || errors.Is(err, os.ErrNotExist) || !retry.wait(ctx) {
			return // it was done, or there is no node yet, or the machine is connected again
		}
	}
}

// signalEtcd makes etcd look whether the machine is partitioned. One that does not run looks when it starts.
func (p *staticPods) signalEtcd() error {
	for _, r := range p.list() {
		pid := r.state().PID
		if r.name() != etcd || pid == 0 {
			continue
		}
		if err := syscall.Kill(pid, partition.Signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signalling etcd: %w", err)
		}
	}
	return nil
}
