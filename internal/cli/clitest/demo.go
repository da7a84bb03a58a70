package clitest

import (
	"net/netip"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// Now is the time at which DemoCluster is looked at.
var Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// DemoCluster is a cluster with a machine of each kind: one that runs, one that boots, one that is off.
func DemoCluster() hostapi.Status {
	return hostapi.Status{
		Cluster: hostapi.Cluster{
			Namespace: "default", Name: "demo", UID: "demo", Addresses: netip.MustParsePrefix("127.1.0.0/20"), Port: 6443,
		},
		PID: 100, StartedAt: Now.Add(-time.Hour), Memory: 30 << 20,
		Confinement: &hostapi.Confinement{Landlock: 7, Seccomp: true, Namespaces: true},
		Machines: []hostapi.MachineStatus{
			{Name: "demo-cp", Node: "demo-cp", ControlPlane: true, Version: "v1.36.3", Address: "127.1.0.11",
				Boot: hostapi.BootStatus{Done: true, Attempts: 1}, Registered: true, Processes: []hostapi.ProcessStatus{
					{Name: "etcd", PID: 101, Ready: true, Memory: 33 << 20},
					{Name: "kube-apiserver", PID: 102, Ready: true, Restarts: 2, Memory: 160 << 20},
				}},
			{Name: "demo-new", Node: "demo-new", ControlPlane: true, Version: "v1.36.3", Address: "127.1.0.12",
				Boot: hostapi.BootStatus{Step: "wait-control-plane"}, Processes: []hostapi.ProcessStatus{
					{Name: "etcd", PID: 103, Ready: true, Memory: 20 << 20},
					{Name: "kube-apiserver", Restarts: 1},
				}},
			{Name: "demo-off", Node: "demo-off", Version: "v1.36.3", Address: "127.1.0.13", Off: true},
		},
	}
}
