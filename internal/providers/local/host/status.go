package host

import (
	"errors"
	"os"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func (h *Host) status() hostapi.Status {
	h.mu.Lock()
	s := hostapi.Status{
		Revision: h.revision, Cluster: h.cluster, PID: os.Getpid(), StartedAt: h.started, Problem: h.problem,
		Confinement: &h.cfg.Confinement,
		Protocol:    hostapi.JoinProtocol,
	}
	if v := h.cfg.Versions.BuiltIn; v != nil {
		s.Kubernetes = "v" + v.String()
	}
	h.mu.Unlock()
	s.Memory = anonymousMemory(s.PID)
	for _, m := range h.listMachines() {
		s.Machines = append(s.Machines, m.status())
		if m.kubelet.IsServing() {
			s.Serving = append(s.Serving, m.spec.Name)
		}
	}
	return s
}

func (m *machine) status() hostapi.MachineStatus {
	s := hostapi.MachineStatus{
		Name: m.spec.Name, Node: m.spec.Node, UID: m.spec.UID, ControlPlane: m.spec.ControlPlane, Version: m.spec.Version,
		Dir: string(m.dir), Off: m.off, Partitioned: m.kubelet.IsPartitioned(), Configured: m.configured.Load(),
	}
	if m.address.IsValid() {
		s.Address = m.address.String()
	}
	if err := readJSON(m.dir.BootFile(), &s.Boot); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Boot.Problem = err.Error()
	}
	if !s.Boot.Done && s.Boot.Problem == "" {
		s.Boot.Problem = m.bootProblem()
	}
	s.Boot.NotHonored = append(s.Boot.NotHonored, m.kubelet.NotHonored()...)
	s.Processes, s.Registered, s.Problem = m.kubelet.Status()
	if m.startError != nil {
		s.Problem = m.startError.Error()
	}
	for i, p := range s.Processes {
		s.Processes[i].Memory = anonymousMemory(p.PID)
	}
	return s
}
