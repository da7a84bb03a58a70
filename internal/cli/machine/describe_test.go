package machine

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// failingMachine is a machine about which there is much to say.
func failingMachine() hostapi.MachineStatus {
	return hostapi.MachineStatus{
		Name: "demo-cp", Node: "node-cp", ControlPlane: true, Version: "v1.36.3", Address: "127.1.0.11", Dir: "/d/m",
		Boot: hostapi.BootStatus{
			Step: "wait-control-plane", Attempts: 2, Problem: "wait-control-plane: no answer",
			Steps:      []hostapi.BootStep{{Name: "files", Took: 4 * time.Millisecond}, {Name: "control-plane", Took: 12345 * time.Millisecond}},
			NotHonored: []string{"runcmd: sysctl -w a=b", "ntp"},
			Commands:   []string{"sysctl -w a=b", "kubeadm init"},
			Notes:      []string{"criSocket was set"},
		},
		Processes: []hostapi.ProcessStatus{
			{Name: "etcd", PID: 101, Ready: true, StartedAt: clitest.Now.Add(-90 * time.Second), Memory: 33 << 20, Log: "/d/etcd.log", Command: []string{
				"etcd", "--a=b c",
			}},
			{
				Name: "kube-apiserver", Restarts: 3, Log: "/d/api.log", LastExit: "exited with code 1 at noon: no store", Output: []string{"starting", "no store"},
				Command: []string{"kube-apiserver"},
				Rewrites: []hostapi.Rewrite{
					{From: "--a=/etc", To: "--a=/d/etc", Why: "files are elsewhere"}, {To: "--bind=127.1.0.11", Why: "addresses are shared"},
					{From: "--b=/var", To: "--b=/d/var", Why: "files are elsewhere"}, {From: "--c", Why: "it needs root"},
				},
			},
			{Name: "kube-scheduler", PID: 102, StartedAt: clitest.Now.Add(-time.Second), Log: "/d/s.log", Command: []string{"kube-scheduler"}},
		},
	}
}

const failingMachineText = `Machine:     demo-cp
Cluster:     default/demo, endpoint 127.1.0.1:6443
State:       failing
Problem:     kube-apiserver exited with code 1 at noon: no store
Role:        control-plane
Version:     v1.36.3
Address:     127.1.0.11
Directory:   /d/m
Node:        node-cp, not registered
Host:        process 100, up 1h0m, 30 MB; the endpoint is taken

PROCESS          STATE         PID   SINCE   MEMORY   RESTARTS
etcd             ready         101   1m30s   33 MB    0
kube-apiserver   not running   -     -       -        3
kube-scheduler   not ready     102   1s      0 MB     0

Boot: at wait-control-plane, attempts: 2
  files                0.00s
  control-plane        12.35s
  wait-control-plane   at work
  Problem: wait-control-plane: no answer

Not honoured, because the machine is only processes:
  runcmd: sysctl -w a=b
  ntp

Commands a real machine would have run:
  sysctl -w a=b
  kubeadm init

Changed so that kubeadm accepts it:
  criSocket was set

Process etcd:
  Log: /d/etcd.log
  Command:
    etcd
    --a=b c

Process kube-apiserver:
  Log: /d/api.log
  Last exit: it exited with code 1 at noon: no store
  Last lines before that:
    starting
    no store
  Command:
    kube-apiserver
  Differs from the static pod, because files are elsewhere:
    --a=/etc
      -> --a=/d/etc
    --b=/var
      -> --b=/d/var
  Differs from the static pod, because addresses are shared:
    (nothing)
      -> --bind=127.1.0.11
  Differs from the static pod, because it needs root:
    --c
      -> (dropped)

Process kube-scheduler:
  Log: /d/s.log
  Command:
    kube-scheduler
`

func TestDescribe(t *testing.T) {
	s := clitest.DemoCluster()
	s.Problem, s.Machines = "the endpoint is taken", []hostapi.MachineStatus{failingMachine()}
	var b bytes.Buffer
	if err := reportMachines(localcluster.List{{Status: s, Running: true}}, clitest.Now)[0].printDescription(&b, clitest.Now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(failingMachineText, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDescribeLines goes through what the machine above cannot show.
func TestDescribeLines(t *testing.T) {
	tests := map[string]struct {
		cluster lifecycle.LocalCluster
		machine hostapi.MachineStatus
		want    []string
	}{
		"host ended": {
			lifecycle.LocalCluster{Dir: "/d", HostError: hostapi.ErrNotRunning}, hostapi.MachineStatus{
				Node: "n", Boot: hostapi.BootStatus{Done: true, Steps: []hostapi.BootStep{{Took: time.Second}}},
			},
			[]string{
				"State:       host down", "Node:        n\n",
				"Host:        it does not run; the plane starts it, once that runs itself (polder up); its log is /d/host.log", "Boot: done in 1.00s, attempts: 0",
			},
		},
		"host hangs": {
			lifecycle.LocalCluster{Dir: "/d", Running: true, HostError: errors.New("no answer within 3s")}, hostapi.MachineStatus{Node: "n"},
			[]string{"State:       host silent", "Host:        it runs, but does not answer: no answer within 3s; see /d/host.log"},
		},
		"off": {lifecycle.LocalCluster{Running: true}, hostapi.MachineStatus{Node: "n", Off: true}, []string{
			"State:       off", "Node:        n\n", "Boot: at its beginning",
		}},
		"booting": {lifecycle.LocalCluster{Running: true}, hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "files"}}, []string{
			"State:       booting (files)\nRole:        worker",
		}},
		"between boots": {lifecycle.LocalCluster{Running: true}, hostapi.MachineStatus{Boot: hostapi.BootStatus{Attempts: 1, Problem: "x"}}, []string{
			"Problem:     boot, attempt 1: x", "Boot: failed, will be tried again, attempts: 1\n  Problem: x",
		}},
		"registered": {lifecycle.LocalCluster{Running: true}, hostapi.MachineStatus{Node: "n", Registered: true}, []string{"Node:        n, registered"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.cluster.Status.Machines = []hostapi.MachineStatus{tt.machine}
			var b bytes.Buffer
			if err := reportMachines(localcluster.List{tt.cluster}, clitest.Now)[0].printDescription(&b, clitest.Now); err != nil {
				t.Fatal(err)
			}
			for _, w := range tt.want {
				if !strings.Contains(b.String(), w) {
					t.Errorf("it does not say %q:\n%s", w, b.String())
				}
			}
		})
	}
}
