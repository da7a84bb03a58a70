package machine

import (
	"fmt"
	"time"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// state is a machine's in one word or two.
type state string

const (
	stateBooting    state = "booting"
	stateRunning    state = "running"
	stateFailing    state = "failing"
	stateOff        state = "off"
	statePartition  state = "partitioned"
	stateHostDown   state = "host down"
	stateHostSilent state = "host silent" // it runs and does not answer
)

// processReadyTimeout is how long a process may take to become ready without having failed.
const processReadyTimeout = time.Minute

// evaluateState says how a machine is, and what it waits for or suffers from.
func evaluateState(l lifecycle.LocalCluster, m hostapi.MachineStatus, now time.Time) (state, string) {
	switch {
	case l.HostError != nil && l.Running:
		return stateHostSilent, m.Problem
	case l.HostError != nil:
		return stateHostDown, m.Problem
	case m.Off:
		return stateOff, ""
	case m.Partitioned:
		return statePartition, "it is cut off from the network; polder machine fail " + m.Name + " --how continue connects it again"
	case m.IsRunning():
		return stateRunning, ""
	}
	why := failureReason(m, now)
	if why == "" && !isClusterStarting(l, now) {
		why = m.Problem
	}
	if why != "" {
		return stateFailing, why
	}
	return stateBooting, pendingStep(m)
}

// isClusterStarting says that a process of the cluster is still starting; until then, machines may have
// problems for want of it.
func isClusterStarting(l lifecycle.LocalCluster, now time.Time) bool {
	for _, m := range l.Status.Machines {
		for _, p := range m.Processes {
			if !p.Ready && p.LastExit == "" && !isOverdue(p, now) {
				return true
			}
		}
	}
	return false
}

// isOverdue tells a process that hangs from one that starts.
func isOverdue(p hostapi.ProcessStatus, now time.Time) bool {
	return !p.StartedAt.IsZero() && now.Sub(p.StartedAt) > processReadyTimeout
}

// failureReason is what of a machine's boot or processes has failed; empty if nothing has.
func failureReason(m hostapi.MachineStatus, now time.Time) string {
	for _, p := range m.Processes {
		switch {
		case p.Ready:
		case p.LastExit != "":
			return p.Name + " " + p.LastExit
		case isOverdue(p, now):
			return fmt.Sprintf("%s runs for %s and is not ready", p.Name, output.Age(now, p.StartedAt))
		}
	}
	if !m.Boot.Done && m.Boot.Problem != "" {
		return fmt.Sprintf("boot, attempt %d: %s", m.Boot.Attempts, m.Boot.Problem)
	}
	return ""
}

// pendingStep is what a machine on its way waits for.
func pendingStep(m hostapi.MachineStatus) string {
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

// stateText is the state as a column of a table; while booting it tells how far that is.
func (m report) stateText() string {
	if m.State == stateBooting && m.Detail != "" {
		return fmt.Sprintf("%s (%s)", m.State, m.Detail)
	}
	return string(m.State)
}
