package kubelet

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// isServing says that the API server is ready and its etcd, if it is on this machine, runs.
func (p *staticPods) isServing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained || p.stopping {
		return false
	}
	for name, r := range p.running {
		if name == etcd && !r.isRunning() {
			return false
		}
	}
	r := p.running[apiServer]
	return r != nil && r.isReady()
}

// list returns the running pods, ordered by name.
func (p *staticPods) list() []*staticPod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*staticPod
	for _, r := range p.running {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *staticPod) int { return strings.Compare(a.name(), b.name()) })
	return all
}

// rejectionMessages lists, in order of their names, manifests that cannot be run and why.
func (p *staticPods) rejectionMessages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Values(p.rejected))
}

func (p *staticPods) status() []hostapi.ProcessStatus {
	var out []hostapi.ProcessStatus
	for _, r := range p.list() {
		out = append(out, r.status())
	}
	return append(out, p.refusedStatus()...)
}

// refusedStatus shows pods of the control plane that may not be run as processes that fail: the machine is none without
// them.
func (p *staticPods) refusedStatus() (out []hostapi.ProcessStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, file := range slices.Sorted(maps.Keys(p.refused)) {
		name := p.refused[file]
		out = append(out, hostapi.ProcessStatus{
			Name: name, Log: p.cfg.Dir.LogFile(name), LastExit: "is not started: " + p.rejected[file],
		})
	}
	return out
}

func (p *staticPods) isDraining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running[apiServer]
	return p.drained && !p.killed && r != nil && r.isRunning()
}

// defaultAPIServerPort is that of an API server whose arguments name none.
const defaultAPIServerPort = 6443

// apiServerPort is where the API server listens.
func (p *staticPods) apiServerPort() uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.running[apiServer]; r != nil {
		for _, a := range slices.Backward(r.spec.Args) { // the last one counts
			v, ok := strings.CutPrefix(a, "--secure-port=")
			if n, err := strconv.ParseUint(v, 10, 16); ok && err == nil {
				return uint16(n)
			}
		}
	}
	return defaultAPIServerPort
}
