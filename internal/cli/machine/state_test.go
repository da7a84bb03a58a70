package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestEvaluateState(t *testing.T) {
	answers := lifecycle.LocalCluster{Running: true}
	silent := lifecycle.LocalCluster{Running: true, HostError: errors.New("no answer")}
	down := lifecycle.LocalCluster{HostError: hostapi.ErrNotRunning}
	with := func(p ...hostapi.ProcessStatus) lifecycle.LocalCluster {
		return lifecycle.LocalCluster{Running: true, Status: hostapi.Status{Machines: []hostapi.MachineStatus{{}, {Processes: p}}}}
	}
	booted := hostapi.BootStatus{Done: true}
	ready := hostapi.ProcessStatus{Name: "etcd", PID: 1, Ready: true, LastExit: "exited with code 1"}
	starting := hostapi.ProcessStatus{Name: "kube-apiserver", PID: 2, StartedAt: clitest.Now.Add(-50 * time.Second)}
	late := hostapi.ProcessStatus{Name: "kube-apiserver", PID: 2, StartedAt: clitest.Now.Add(-70 * time.Second)}
	crashed := hostapi.ProcessStatus{Name: "kube-apiserver", LastExit: "exited with code 1"}

	tests := map[string]struct {
		cluster lifecycle.LocalCluster
		machine hostapi.MachineStatus
		want    state
		detail  string
	}{
		"host ended":                 {down, hostapi.MachineStatus{Boot: booted, Off: true}, stateHostDown, ""},
		"files of it are broken":     {down, hostapi.MachineStatus{Problem: "reading x"}, stateHostDown, "reading x"},
		"host hangs":                 {silent, hostapi.MachineStatus{Boot: booted}, stateHostSilent, ""},
		"cut off from the network":   {answers, hostapi.MachineStatus{Name: "m", Partitioned: true}, statePartition, "it is cut off from the network; polder machine fail m --how continue connects it again"},
		"switched off while booting": {answers, hostapi.MachineStatus{Off: true, Boot: hostapi.BootStatus{Step: "certs"}}, stateOff, ""},
		"all runs": {answers,
			hostapi.MachineStatus{ControlPlane: true, Boot: booted, Registered: true, Processes: []hostapi.ProcessStatus{ready}}, stateRunning, ""},
		"worker":    {answers, hostapi.MachineStatus{Boot: booted, Registered: true}, stateRunning, ""},
		"just made": {answers, hostapi.MachineStatus{}, stateBooting, ""},
		"at a step": {answers,
			hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "certs"}, Processes: []hostapi.ProcessStatus{ready, starting}}, stateBooting, "certs"},
		"boot failed": {answers, hostapi.MachineStatus{Boot: hostapi.BootStatus{Problem: "no API", Attempts: 3}}, stateFailing,
			"boot, attempt 3: no API"},
		"process crashed at boot": {answers,
			hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "wait-control-plane"}, Processes: []hostapi.ProcessStatus{ready, crashed}}, stateFailing,
			"kube-apiserver exited with code 1"},
		"on again, process starts": {answers, hostapi.MachineStatus{Boot: booted, Registered: true, Processes: []hostapi.ProcessStatus{ready, starting}},
			stateBooting, "kube-apiserver"},
		"process is never ready": {answers, hostapi.MachineStatus{Boot: booted, Registered: true, Processes: []hostapi.ProcessStatus{ready, late}},
			stateFailing, "kube-apiserver runs for 1m10s and is not ready"},
		"on again, nothing started":        {answers, hostapi.MachineStatus{ControlPlane: true, Boot: booted, Registered: true}, stateBooting, "static pods"},
		"not in the cluster yet":           {answers, hostapi.MachineStatus{Boot: booted}, stateBooting, "registration"},
		"not in the cluster, why":          {answers, hostapi.MachineStatus{Boot: booted, Problem: "node: refused"}, stateFailing, "node: refused"},
		"not in the cluster, which starts": {with(ready, starting), hostapi.MachineStatus{Boot: booted, Problem: "node: refused"}, stateBooting, "registration"},
		"not in the cluster, which hangs":  {with(ready, late), hostapi.MachineStatus{Boot: booted, Problem: "node: refused"}, stateFailing, "node: refused"},
		"not in the cluster, which failed": {with(ready, crashed), hostapi.MachineStatus{Boot: booted, Problem: "node: refused"}, stateFailing, "node: refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, detail := evaluateState(tt.cluster, tt.machine, clitest.Now); got != tt.want || detail != tt.detail {
				t.Errorf("judge() = %s (%s), want %s (%s)", got, detail, tt.want, tt.detail)
			}
		})
	}
}
