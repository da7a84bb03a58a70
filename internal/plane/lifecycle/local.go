package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// TenantPlanesDir is where the data of planes of tenants are, below those of the plane that runs them.
const TenantPlanesDir = "planes"

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

// hosted is a local cluster, and who starts and stops its host.
type hosted struct {
	hostapi.Cluster
	launcher launch.Launcher
}

func (p *Plane) launcher() launch.Launcher { return launch.Launcher{HostsDir: hostapi.HostsDir(p.dir)} }

// LocalClusters asks the hosts of all local clusters at the same time, also of those in planes of tenants. It needs no
// running polderd. The clusters are ordered by namespace and name; a host that does not answer is no error.
func (p *Plane) LocalClusters(ctx context.Context) ([]LocalCluster, error) {
	known, err := p.listClusters()
	if err != nil {
		return nil, err
	}
	all := make([]LocalCluster, len(known))
	var wg sync.WaitGroup
	for i, c := range known {
		wg.Go(func() { all[i] = c.inspect(ctx) })
	}
	wg.Wait()
	return all, nil
}

// RunningClusters are local clusters that have a host process.
type RunningClusters []hosted

// RunningClusters lists the local clusters that have a host process, whether or not it answers.
func (p *Plane) RunningClusters() (RunningClusters, error) {
	known, err := p.listClusters()
	if err != nil {
		return nil, err
	}
	var running RunningClusters
	for _, c := range known {
		is, err := c.launcher.IsRunning(c.UID)
		if err != nil {
			return nil, fmt.Errorf("asking who keeps local cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
		if is {
			running = append(running, c)
		}
	}
	return running, nil
}

// listClusters lists the local clusters of this plane and of those of its tenants.
func (p *Plane) listClusters() (all []hosted, err error) {
	planes, err := p.tenantPlanes()
	if err != nil {
		return nil, exit.Errorf(exit.DataDir, "local clusters cannot be listed: %w", err)
	}
	for _, of := range append(planes, p) {
		known, err := of.launcher().Clusters()
		if err != nil {
			return nil, exit.Errorf(exit.DataDir, "local clusters cannot be listed: %w", err)
		}
		for _, c := range known {
			all = append(all, hosted{Cluster: c, launcher: of.launcher()})
		}
	}
	slices.SortFunc(all, func(a, b hosted) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// tenantPlanes are the planes whose data are below those of this one.
func (p *Plane) tenantPlanes() (all []*Plane, err error) {
	dirs, err := os.ReadDir(filepath.Join(p.dir, TenantPlanesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range dirs {
		all = append(all, &Plane{dir: filepath.Join(p.dir, TenantPlanesDir, d.Name())})
	}
	return all, nil
}

// Parent returns the directory of the plane that runs this one, which is a tenant's; nothing if it is none.
func (p *Plane) Parent() string {
	dir, found := strings.CutSuffix(filepath.Dir(p.dir), string(filepath.Separator)+TenantPlanesDir)
	if !found || !datadir.HasMarker(dir) {
		return ""
	}
	return dir
}

// inspect asks a host, and reads its files where it does not answer.
func (c hosted) inspect(ctx context.Context) LocalCluster {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	l := LocalCluster{Dir: c.launcher.Dir(c.UID), Running: true}
	if l.Status, l.HostError = hostapi.NewClient(l.Dir).Status(ctx); l.HostError == nil {
		return l
	}
	if errors.Is(l.HostError, context.DeadlineExceeded) {
		l.HostError = fmt.Errorf("no answer within %s", hostTimeout) // instead of method and URL
	}
	var err error
	if l.Running, err = c.launcher.IsRunning(c.UID); err != nil {
		l.HostError = fmt.Errorf("%w; %w", l.HostError, err)
	}
	l.Status = hostapi.Status{Cluster: c.Cluster, Machines: machinesOnDisk(l.Dir)}
	return l
}
