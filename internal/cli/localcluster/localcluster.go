// Package localcluster says how local clusters and their hosts are.
package localcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// List are all local clusters of a data directory, ordered by namespace and name.
type List []lifecycle.LocalCluster

// Read asks the hosts of all local clusters of a data directory. That one does not answer is no error, but said in its
// entry.
func Read(ctx context.Context, g *connect.Globals) (List, error) {
	p, err := g.Plane()
	if err != nil {
		return nil, err
	}
	return p.LocalClusters(ctx)
}

// SelectByName are the clusters called [NAMESPACE/]NAME: without namespace there may be several. If there is none, it
// is an error that names the others.
func (all List) SelectByName(name string) (List, error) {
	var these List
	var names []string
	for _, l := range all {
		full := QualifiedName(l)
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

// QualifiedName is NAMESPACE/NAME of a local cluster.
func QualifiedName(l lifecycle.LocalCluster) string {
	return l.Status.Cluster.Namespace + "/" + l.Status.Cluster.Name
}

// HostReport is how the process is that keeps a cluster, as it is printed.
type HostReport struct {
	Running   bool      `json:"running"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	Memory    uint64    `json:"memory,omitempty"` // of the host alone, in bytes
	Endpoint  string    `json:"endpoint"`
	Dir       string    `json:"dir"`
	Problem   string    `json:"problem,omitempty"`
	// Confinement is what keeps the cluster's processes apart from everything else; nil if its host does not say.
	Confinement *hostapi.Confinement `json:"confinement,omitempty"`
}

// isUnconfined says that the host answers, and has less around it than it should: it may be of an older polderd.
func (r HostReport) isUnconfined() bool {
	return r.PID != 0 && (r.Confinement == nil || !r.Confinement.Complete())
}

// ReportHost says how the host of a cluster is, and, if it does not run or answer, who starts it or where its log is.
func ReportHost(l lifecycle.LocalCluster) HostReport {
	s := l.Status
	r := HostReport{
		Running: l.Running, PID: s.PID, StartedAt: s.StartedAt, Memory: s.Memory, Endpoint: s.Cluster.Endpoint().String(),
		Dir: string(l.Dir), Problem: s.Problem, Confinement: s.Confinement,
	}
	switch {
	case l.HostError != nil && l.Running:
		r.Problem = fmt.Sprintf("it runs, but does not answer: %v; see %s", l.HostError, l.Dir.LogFile())
	case l.HostError != nil:
		r.Problem = fmt.Sprintf("it does not run; the plane starts it, once that runs itself (polder up); its log is %s",
			l.Dir.LogFile())
	}
	return r
}

// Report is a local cluster in `polder status`.
type Report struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Machines    int    `json:"machines"`
	TotalMemory uint64 `json:"totalMemory"` // of the host and all processes of the machines, in bytes
	HostReport
}

// Reports are those of all clusters, in their order.
func (all List) Reports() []Report {
	reports := []Report{}
	for _, l := range all {
		r := Report{
			Namespace: l.Status.Cluster.Namespace, Name: l.Status.Cluster.Name, Machines: len(l.Status.Machines),
			TotalMemory: l.Status.Memory, HostReport: ReportHost(l),
		}
		for _, m := range l.Status.Machines {
			r.TotalMemory += MachineMemory(m)
		}
		reports = append(reports, r)
	}
	return reports
}

// Describe is the line of `polder status` about these clusters.
func Describe(all []Report) string {
	running, unconfined, total := 0, 0, uint64(0)
	for _, c := range all {
		total += c.TotalMemory
		if c.isUnconfined() {
			unconfined++
		}
		if c.Running {
			running++
		}
	}
	s := fmt.Sprintf("%d running, %d not", running, len(all)-running)
	if total > 0 {
		s += fmt.Sprintf("; %s in all their processes", output.Megabytes(total))
	}
	if unconfined > 0 {
		s += fmt.Sprintf("; %d not confined: polder down --clusters and polder up start them anew", unconfined)
	}
	return s
}

// MachineMemory is that of all the machine's processes, in bytes.
func MachineMemory(m hostapi.MachineStatus) (sum uint64) {
	for _, p := range m.Processes {
		sum += p.Memory
	}
	return sum
}
