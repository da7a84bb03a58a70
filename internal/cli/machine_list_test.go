package cli

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// demo is a cluster with a machine of each kind.
func demo() hostapi.Status {
	return hostapi.Status{
		Cluster: hostapi.Cluster{Namespace: "default", Name: "demo", UID: "demo", Addresses: netip.MustParsePrefix("127.1.0.0/20"), Port: 6443},
		PID:     100, StartedAt: now.Add(-time.Hour), Memory: 30 << 20,
		Machines: []hostapi.MachineStatus{
			{Name: "demo-cp", Node: "demo-cp", ControlPlane: true, Version: "v1.36.3", Address: "127.1.0.11", Boot: hostapi.BootStatus{Done: true, Attempts: 1}, Registered: true, Processes: []hostapi.ProcessStatus{
				{Name: "etcd", PID: 101, Ready: true, Memory: 33 << 20},
				{Name: "kube-apiserver", PID: 102, Ready: true, Restarts: 2, Memory: 160 << 20},
			}},
			{Name: "demo-new", Node: "demo-new", ControlPlane: true, Version: "v1.36.3", Address: "127.1.0.12", Boot: hostapi.BootStatus{Step: "wait-control-plane"}, Processes: []hostapi.ProcessStatus{
				{Name: "etcd", PID: 103, Ready: true, Memory: 20 << 20},
				{Name: "kube-apiserver", Restarts: 1},
			}},
			{Name: "demo-off", Node: "demo-off", Version: "v1.36.3", Address: "127.1.0.13", Off: true},
		},
	}
}

func TestMachineTable(t *testing.T) {
	silent := hostapi.Status{
		Cluster:  hostapi.Cluster{Namespace: "two", Name: "other"},
		Machines: []hostapi.MachineStatus{{Name: "w", Version: "v1.35.0", Address: "127.2.0.11"}, {Name: "x"}},
	}
	these := reportMachines(localClusters{{Status: demo(), Running: true}, {Status: silent, HostError: hostapi.ErrNotRunning}}, now)
	var b bytes.Buffer
	if err := these.printTable(&b); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   CLUSTER   MACHINE    ROLE            VERSION   ADDRESS      STATE                          PROCESSES   RESTARTS   MEMORY
default     demo      demo-cp    control-plane   v1.36.3   127.1.0.11   running                        2/2         2          193 MB
default     demo      demo-new   control-plane   v1.36.3   127.1.0.12   booting (wait-control-plane)   1/2         1          20 MB
default     demo      demo-off   worker          v1.36.3   127.1.0.13   off                            -           -          -
two         other     w          worker          v1.35.0   127.2.0.11   host down                      -           -          -
two         other     x          worker          -         -            host down                      -           -          -
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectByName(t *testing.T) {
	in := func(namespace, name string) lifecycle.LocalCluster {
		return lifecycle.LocalCluster{Status: hostapi.Status{Cluster: hostapi.Cluster{Namespace: namespace, Name: name}}}
	}
	these := localClusters{in("a", "x"), in("b", "x"), in("b", "y")}
	for name, want := range map[string]string{"x": "a/x b/x", "b/x": "b/x", "y": "b/y", "a/y": `there is no local cluster "a/y"; choose from: a/x, b/x, b/y`} {
		found, err := these.selectByName(name)
		var names []string
		for _, l := range found {
			names = append(names, qualifiedName(l))
		}
		if got := strings.Join(names, " ") + Message(err); got != want {
			t.Errorf("named(%s): %s, want %s", name, got, want)
		}
	}
	if _, err := (localClusters{}).selectByName("x"); Message(err) != `there is no local cluster "x", and no other in this data directory` {
		t.Errorf("where there are none: %v", err)
	}
}

func TestDescribeLocalClusters(t *testing.T) {
	these := localClusters{{Status: demo(), Running: true}, {Running: true, HostError: hostapi.ErrNotRunning}, {HostError: hostapi.ErrNotRunning}}
	if got, want := describeLocalClusters(these.reportClusters()), "2 running, 1 not; 243 MB in all their processes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := describeLocalClusters(these[2:].reportClusters()), "0 running, 1 not"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
