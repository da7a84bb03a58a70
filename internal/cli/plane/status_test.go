package plane

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	planestatus "github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func newRoot() *cobra.Command {
	root, g := connect.NewRoot(connect.PolderName)
	root.AddCommand(NewDownCommand(g), NewStatusCommand(g))
	return root
}

func TestStatusTable(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := report{DataDir: "/d", Ready: true, Summary: "It is ready.", LocalClusters: localcluster.List{{Status: clitest.DemoCluster(), Running: true}}.Reports(),
		Report: lifecycle.Report{
			Running: true,
			Memory:  lifecycle.Memory{Resident: 300 << 20, Anonymous: 200 << 20},
			Status: planestatus.Status{PID: 7, Address: "https://127.0.0.1:7443", Kubeconfig: "/d/k", StartedAt: now.Add(-90 * time.Second),
				Versions: buildinfo.Info{Version: "v1", Kubernetes: "v2", ClusterAPI: "v3", Etcd: "v4"},
				Components: []supervisor.Status{
					{Name: "etcd", State: supervisor.Ready, Since: now.Add(-89 * time.Second)},
					{Name: "cluster-api", State: supervisor.Failed, Since: now.Add(-3 * time.Second), Message: "its check fails now"},
				}},
		}}
	var b bytes.Buffer
	if err := r.printTable(&b, now); err != nil {
		t.Fatal(err)
	}
	want := `Plane:            It is ready.
Data:             /d
Address:          https://127.0.0.1:7443
Kubeconfig:       /d/k
Process:          7, up 1m30s
Memory:           300 MB, 200 MB of it not shared with the binary on disk
Versions:         polder v1 (Kubernetes v2, Cluster API v3, etcd v4)
Local clusters:   1 running, 0 not; 243 MB in all their processes

COMPONENT     STATE    SINCE   MESSAGE
etcd          ready    1m29s   ` + `
cluster-api   failed   3s      its check fails now
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusOfClustersWithoutPlane(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.NotReady, "Plane:   There is no plane here yet; polder up makes one.\nData:    DIR\n", "", "status")
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	out, _, code := p.Execute("status", "-o", "json")
	var got struct {
		LocalClusters []struct {
			Namespace, Name, Endpoint string
			Machines, PID             int
			Running                   bool
			TotalMemory               uint64
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exit.NotReady || len(got.LocalClusters) != 1 {
		t.Fatalf("status -o json ends with %d, %v:\n%s", code, err, out)
	}
	if c := got.LocalClusters[0]; c.Namespace != "default" || c.Name != "demo" || c.Endpoint != "127.1.0.1:6443" || c.Machines != 3 || c.PID != 100 ||
		!c.Running || c.TotalMemory != 243<<20 {
		t.Errorf("status -o json says %+v", c)
	}
	p.WriteFile(filepath.Join(hostapi.HostsDir(p.Dir), "broken", "cluster.json"), "{")
	if out, _, code := p.Execute("status"); code != exit.NotReady || !strings.Contains(out, "Local clusters:   local clusters cannot be listed") {
		t.Errorf("with broken files status ends with %d:\n%s", code, out)
	}
}
