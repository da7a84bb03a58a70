package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// listLocalClusters are all local clusters of a data directory, ordered by namespace and name.
type localClusters []lifecycle.LocalCluster

func listLocalClusters(ctx context.Context, g *globals) (localClusters, error) {
	p, err := g.plane()
	if err != nil {
		return nil, err
	}
	return p.LocalClusters(ctx)
}

// selectByName are the clusters called [NAMESPACE/]NAME: without namespace there may be several.
func (all localClusters) selectByName(name string) (localClusters, error) {
	var these localClusters
	var names []string
	for _, l := range all {
		full := qualifiedName(l)
		names = append(names, full)
		if name == full || name == l.Status.Cluster.Name {
			these = append(these, l)
		}
	}
	switch {
	case len(these) > 0:
		return these, nil
	case len(names) == 0:
		return nil, exit.Errorf(exit.Usage, "there is no local cluster %q, and no other in this data directory", name)
	}
	return nil, exit.Errorf(exit.Usage, "there is no local cluster %q; choose from: %s", name, strings.Join(names, ", "))
}

func qualifiedName(l lifecycle.LocalCluster) string {
	return l.Status.Cluster.Namespace + "/" + l.Status.Cluster.Name
}

func reportMachines(all localClusters, now time.Time) machineReports {
	these := machineReports{}
	for _, l := range all {
		for _, m := range l.Status.Machines {
			r := machineReport{Namespace: l.Status.Cluster.Namespace, Cluster: l.Status.Cluster.Name, Host: reportHost(l), MachineStatus: m}
			r.State, r.Detail = evaluateMachine(l, m, now)
			these = append(these, r)
		}
	}
	return these
}

// hostReport is how the process is that keeps a cluster.
type hostReport struct {
	Running   bool      `json:"running"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	Memory    uint64    `json:"memory,omitempty"` // of the host alone, in bytes
	Endpoint  string    `json:"endpoint"`
	Dir       string    `json:"dir"`
	Problem   string    `json:"problem,omitempty"`
}

func reportHost(l lifecycle.LocalCluster) hostReport {
	s := l.Status
	r := hostReport{Running: l.Running, PID: s.PID, StartedAt: s.StartedAt, Memory: s.Memory, Endpoint: s.Cluster.Endpoint().String(), Dir: string(l.Dir), Problem: s.Problem}
	switch {
	case l.HostError != nil && l.Running:
		r.Problem = fmt.Sprintf("it runs, but does not answer: %v; see %s", l.HostError, l.Dir.LogFile())
	case l.HostError != nil:
		r.Problem = fmt.Sprintf("it does not run; the plane starts it, once that runs itself (polder up); its log is %s", l.Dir.LogFile())
	}
	return r
}

// clusterReport is a local cluster in `polder status`.
type clusterReport struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Machines    int    `json:"machines"`
	TotalMemory uint64 `json:"totalMemory"` // of the host and all processes of the machines, in bytes
	hostReport
}

func (all localClusters) reportClusters() []clusterReport {
	reports := []clusterReport{}
	for _, l := range all {
		r := clusterReport{Namespace: l.Status.Cluster.Namespace, Name: l.Status.Cluster.Name, Machines: len(l.Status.Machines), TotalMemory: l.Status.Memory, hostReport: reportHost(l)}
		for _, m := range l.Status.Machines {
			r.TotalMemory += machineMemory(m)
		}
		reports = append(reports, r)
	}
	return reports
}

// describeLocalClusters is the line of `polder status`.
func describeLocalClusters(all []clusterReport) string {
	running, total := 0, uint64(0)
	for _, c := range all {
		total += c.TotalMemory
		if c.Running {
			running++
		}
	}
	s := fmt.Sprintf("%d running, %d not", running, len(all)-running)
	if total > 0 {
		s += fmt.Sprintf("; %s in all their processes", formatMegabytes(total))
	}
	return s
}
