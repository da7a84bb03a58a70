package cli

import (
	"fmt"
	"time"

	"github.com/polder-kaas/polder/internal/planectl"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
)

// state is a machine's in one word or two.
type state string

const (
	booting    state = "booting"
	running    state = "running"
	failing    state = "failing"
	off        state = "off"
	hostDown   state = "host down"
	hostSilent state = "host silent" // it runs and does not answer
)

// patience is how long a process may take to become ready without having failed.
const patience = time.Minute

// judge says how a machine is, and what it waits for or suffers from.
func judge(l planectl.LocalCluster, m hostapi.MachineStatus, now time.Time) (state, string) {
	switch {
	case l.HostError != nil && l.Running:
		return hostSilent, m.Problem
	case l.HostError != nil:
		return hostDown, m.Problem
	case m.Off:
		return off, ""
	case m.IsRunning():
		return running, ""
	}
	why := ailment(m, now)
	if why == "" && !settling(l, now) {
		why = m.Problem
	}
	if why != "" {
		return failing, why
	}
	return booting, awaited(m)
}

// settling says that a process of the cluster is still starting; until then, machines may have
// problems for want of it.
func settling(l planectl.LocalCluster, now time.Time) bool {
	for _, m := range l.Status.Machines {
		for _, p := range m.Processes {
			if !p.Ready && p.LastExit == "" && !late(p, now) {
				return true
			}
		}
	}
	return false
}

func late(p hostapi.ProcessStatus, now time.Time) bool {
	return !p.StartedAt.IsZero() && now.Sub(p.StartedAt) > patience
}

// ailment is what of a machine's boot or processes has failed; empty if nothing has.
func ailment(m hostapi.MachineStatus, now time.Time) string {
	for _, p := range m.Processes {
		switch {
		case p.Ready:
		case p.LastExit != "":
			return p.Name + " " + p.LastExit
		case late(p, now):
			return fmt.Sprintf("%s runs for %s and is not ready", p.Name, age(now, p.StartedAt))
		}
	}
	if !m.Boot.Done && m.Boot.Problem != "" {
		return fmt.Sprintf("boot, attempt %d: %s", m.Boot.Attempts, m.Boot.Problem)
	}
	return ""
}

// awaited is what a machine on its way waits for.
func awaited(m hostapi.MachineStatus) string {
	if !m.Boot.Done {
		return m.Boot.Step
	}
	for _, p := range m.Processes {
		if !p.Ready {
			return p.Name
		}
	}
	if m.ControlPlane && len(m.Processes) == 0 {
		return "static pods"
	}
	return "registration"
}

// short is the state as a column of a table; while booting it tells how far that is.
func (m machineReport) short() string {
	if m.State == booting && m.Detail != "" {
		return fmt.Sprintf("%s (%s)", m.State, m.Detail)
	}
	return string(m.State)
}
