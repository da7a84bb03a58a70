package lifecycle

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func cluster(name string) hostapi.Cluster {
	return hostapi.Cluster{Namespace: "default", Name: name, UID: name, Addresses: netip.MustParsePrefix("127.1.0.0/20"), Port: 6443}
}

func plane(t *testing.T) *Plane {
	t.Helper()
	p, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLocalClusters(t *testing.T) {
	p := plane(t)
	if all, err := p.LocalClusters(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("before there are any: %v, %v", all, err)
	}
	told := hostapi.Status{Cluster: cluster("c-answers"), PID: 7, Machines: []hostapi.MachineStatus{{Name: "m", Registered: true}}}
	fakehost.Start(t, p.Dir(), told)
	fakehost.StartUnresponsive(t, p.Dir(), cluster("a-silent"))
	fakehost.Prepare(t, p.Dir(), cluster("b-down"))

	all, err := p.LocalClusters(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("LocalClusters() = %+v, %v", all, err)
	}
	for i, want := range []struct {
		name             string
		running, answers bool
	}{{"a-silent", true, false}, {"b-down", false, false}, {"c-answers", true, true}} {
		l := all[i]
		if l.Status.Cluster.Name != want.name || l.Running != want.running || (l.HostError == nil) != want.answers {
			t.Errorf("cluster %d is %+v, want %+v", i, l, want)
		}
	}
	if diff := cmp.Diff(told, all[2].Status, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("what the host told (-want +got):\n%s", diff)
	}
}

func TestMachinesOnDisk(t *testing.T) {
	dir := hostapi.Dir(t.TempDir())
	whole := dir.MachineDir("a-whole")
	write(t, whole.SpecFile(), `{"name":"a-whole","node":"n","uid":"u","controlPlane":true,"version":"v1","userData":"c2VjcmV0"}`)
	write(t, whole.AddressFile(), "127.1.0.11\n")
	write(t, whole.BootFile(), `{"done":true,"attempts":2}`)
	write(t, whole.OffFile(), "")
	write(t, dir.MachineDir("b-broken").SpecFile(), `{"name":`)
	write(t, dir.MachineDir("c-new").SpecFile(), `{"name":"c-new"}`)
	write(t, dir.MachineDir("d-half-made").AddressFile(), "127.1.0.12\n")

	got := machinesOnDisk(dir)
	want := []hostapi.MachineStatus{
		{Name: "a-whole", Node: "n", UID: "u", ControlPlane: true, Version: "v1", Address: "127.1.0.11", Dir: string(whole), Off: true, Boot: hostapi.BootStatus{
			Done: true, Attempts: 2,
		}},
		{Name: "b-broken", Dir: string(dir.MachineDir("b-broken")), Problem: "reading " + dir.MachineDir("b-broken").SpecFile() + ": unexpected end of JSON input"},
		{Name: "c-new", Dir: string(dir.MachineDir("c-new"))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStopRunningClusters(t *testing.T) {
	p := plane(t)
	fakehost.Start(t, p.Dir(), hostapi.Status{Cluster: cluster("a")})
	fakehost.Start(t, p.Dir(), hostapi.Status{Cluster: cluster("b")}).IgnoreStop()
	fakehost.Start(t, filepath.Join(p.Dir(), TenantPlanesDir, "t"), hostapi.Status{Cluster: cluster("c")})
	fakehost.Prepare(t, p.Dir(), cluster("d-down"))

	running := expectRunning(t, p, "a", "b", "c")
	stopped, err := running.Stop(t.Context(), 500*time.Millisecond)
	if exit.Code(err) != exit.Timeout || !strings.Contains(err.Error(), "1 of 3") || !strings.Contains(err.Error(), "default/b (not within 500ms; see ") {
		t.Errorf("Stop() says: %v", err)
	}
	if len(stopped) != 2 || stopped[0].Name != "a" || stopped[1].Name != "c" {
		t.Errorf("stopped %+v", stopped)
	}
	expectRunning(t, p, "b")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := running[1:2].Stop(ctx, time.Minute); exit.Code(err) != exit.Failure {
		t.Errorf("interrupted, Stop() says: %v", err)
	}
}

func expectRunning(t *testing.T, p *Plane, names ...string) RunningClusters {
	t.Helper()
	running, err := p.RunningClusters()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range running {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	return running
}

func TestClustersThatCannotBeListed(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string){
		"no folder":    func(t *testing.T, root string) { write(t, root, "") },
		"broken files": func(t *testing.T, root string) { write(t, hostapi.Dir(filepath.Join(root, "x")).ClusterFile(), "{") },
	} {
		t.Run(name, func(t *testing.T) {
			p := plane(t)
			spoil(t, hostapi.HostsDir(p.Dir()))
			if _, err := p.LocalClusters(t.Context()); exit.Code(err) != exit.DataDir {
				t.Errorf("LocalClusters() says: %v", err)
			}
			if _, err := p.RunningClusters(); exit.Code(err) != exit.DataDir {
				t.Errorf("RunningClusters() says: %v", err)
			}
		})
	}
}
