package machine

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestTable(t *testing.T) {
	silent := hostapi.Status{
		Cluster:  hostapi.Cluster{Namespace: "two", Name: "other"},
		Machines: []hostapi.MachineStatus{{Name: "w", Version: "v1.35.0", Address: "127.2.0.11"}, {Name: "x"}},
	}
	these := reportMachines(localcluster.List{{Status: clitest.DemoCluster(), Running: true}, {Status: silent, HostError: hostapi.ErrNotRunning}}, clitest.Now)
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
