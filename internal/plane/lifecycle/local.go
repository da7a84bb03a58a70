package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// hostTimeout bounds one request to a host.
const hostTimeout = 3 * time.Second

// LocalCluster is the status of a local cluster as its host reports it or, where no host answers, as its files
// have it.
type LocalCluster struct {
	Status    hostapi.Status // without an answer only Cluster and Machines, and these without processes
	Dir       hostapi.Dir
	Running   bool  // a host process holds the lock of the cluster
	HostError error // why the host gave no answer; nil if it did
}

func (p *Plane) launcher() launch.Launcher { return launch.Launcher{HostsDir: hostapi.HostsDir(p.dir)} }

// LocalClusters asks the hosts of all local clusters at the same time. It needs no running polderd. The clusters
// are ordered by namespace and name; a host that does not answer is no error.
func (p *Plane) LocalClusters(ctx context.Context) ([]LocalCluster, error) {
	known, err := p.listClusters()
	if err != nil {
		return nil, err
	}
	all := make([]LocalCluster, len(known))
	var wg sync.WaitGroup
	for i, c := range known {
		wg.Go(func() { all[i] = p.inspectHost(ctx, c) })
	}
	wg.Wait()
	return all, nil
}

// RunningClusters lists the local clusters that have a host process, whether or not it answers.
func (p *Plane) RunningClusters() ([]hostapi.Cluster, error) {
	known, err := p.listClusters()
	if err != nil {
		return nil, err
	}
	var running []hostapi.Cluster
	for _, c := range known {
		is, err := p.launcher().IsRunning(c.UID)
		if err != nil {
			return nil, fmt.Errorf("asking who keeps local cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
		if is {
			running = append(running, c)
		}
	}
	return running, nil
}

func (p *Plane) listClusters() ([]hostapi.Cluster, error) {
	known, err := p.launcher().Clusters()
	if err != nil {
		return nil, exit.Errorf(exit.DataDir, "local clusters cannot be listed: %w", err)
	}
	slices.SortFunc(known, func(a, b hostapi.Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return known, nil
}

// inspectHost asks a host, and reads its files where it does not answer.
func (p *Plane) inspectHost(ctx context.Context, c hostapi.Cluster) LocalCluster {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	l := LocalCluster{Dir: p.launcher().Dir(c.UID), Running: true}
	if l.Status, l.HostError = hostapi.NewClient(l.Dir).Status(ctx); l.HostError == nil {
		return l
	}
	if errors.Is(l.HostError, context.DeadlineExceeded) {
		l.HostError = fmt.Errorf("no answer within %s", hostTimeout) // instead of method and URL
	}
	var err error
	if l.Running, err = p.launcher().IsRunning(c.UID); err != nil {
		l.HostError = fmt.Errorf("%w; %w", l.HostError, err)
	}
	l.Status = hostapi.Status{Cluster: c, Machines: machinesOnDisk(l.Dir)}
	return l
}
