package machine

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func newRoot() *cobra.Command {
	root, g := connect.NewRoot(connect.PolderName)
	root.AddCommand(NewCommand(g))
	return root
}

func TestCommandsWithoutMachines(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.OK, "", "There are no machines of local clusters in DIR.\n", "machine", "list")
	p.Expect(exit.OK, "[]\n", "", "machine", "list", "-o", "json")
	p.Expect(exit.Usage, "", `there is no machine "x", and no other in DIR`, "machine", "describe", "x")
	p.Expect(exit.Usage, "", `there is no local cluster "x", and no other in this data directory`, "machine", "list", "--cluster", "x")
	fakehost.Prepare(t, p.Dir, clitest.DemoCluster().Cluster)
	p.Expect(exit.OK, "", "There are no machines of cluster demo in DIR.\n", "machine", "list", "--cluster", "demo")
}

func TestCommandsWithBadInput(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.Usage, "", `polder machine has no command "lst"; did you mean list?; see: polder machine --help`, "machine", "lst")
	p.Expect(exit.Usage, "", `polder machine has no command "frobnicate"; see: polder machine --help`, "machine", "frobnicate")
	p.Expect(exit.Usage, "", `polder machine off needs the name of a machine; polder machine list shows all`, "machine", "off")
	p.Expect(exit.Usage, "", `polder machine on takes no argument "b"; see: polder machine on --help`, "machine", "on", "a", "b")
	p.Expect(exit.Usage, "", `polder machine logs takes no argument "c"; see: polder machine logs --help`, "machine", "logs", "a", "b", "c")
	p.Expect(exit.Usage, "", `--tail -2 is no number of lines; see: polder machine logs --help`, "machine", "logs", "a", "--tail", "-2")
}

func TestStructure(t *testing.T) {
	p := clitest.New(t, newRoot)
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	out, _, code := p.Execute("machine", "list", "-o", "json")
	var got []struct {
		Namespace, Cluster, Name, State, Detail string
		Host                                    struct{ PID int }
		Processes                               []hostapi.ProcessStatus
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exit.OK || len(got) != 3 {
		t.Fatalf("list -o json ends with %d, %v:\n%s", code, err, out)
	}
	if m := got[1]; m.Namespace != "default" || m.Cluster != "demo" || m.Name != "demo-new" || m.State != "booting" || m.Detail != "wait-control-plane" ||
		m.Host.PID != 100 || len(m.Processes) != 2 {
		t.Errorf("list -o json says %+v", m)
	}
	if out, _, code := p.Execute("machine", "describe", "demo-off", "-o", "yaml"); code != exit.OK || !strings.Contains(out, "state: \"off\"\n") {
		t.Errorf("describe -o yaml ends with %d:\n%s", code, out)
	}
}

func TestPower(t *testing.T) {
	p := clitest.New(t, newRoot)
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	p.Expect(exit.OK, "Machine demo-cp is on already.\n", "", "machine", "on", "demo-cp")
	p.Expect(exit.OK, "Pulled the plug of machine demo-cp; switch it on again with: polder machine on demo-cp --data-dir DIR\n", "", "machine", "off", "demo-cp")
	p.Expect(exit.OK, "Machine default/demo-cp is off already.\n", "", "machine", "off", "default/demo-cp")
	p.Expect(exit.OK, "Switched on machine default/demo-cp; see how it starts with: polder machine list --data-dir DIR\n", "", "machine", "on", "default/demo-cp")
	p.Expect(exit.OK, "Machine demo-cp is on already.\n", "", "machine", "on", "demo-cp")
}

func TestFail(t *testing.T) {
	p := clitest.New(t, newRoot)
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	p.Expect(exit.OK, "All processes of machine demo-cp hang; let them go on with: polder machine fail demo-cp --how continue --data-dir DIR\n", "", "machine", "fail", "demo-cp", "--how", "stop")
	p.Expect(exit.OK, "Machine demo-cp goes on.\n", "", "machine", "fail", "demo-cp", "--how", "continue")
	p.Expect(exit.OK, "Machine demo-cp is cut off from the network; connect it again with: polder machine fail demo-cp --how continue --data-dir DIR\n", "", "machine", "fail", "demo-cp", "--how", "partition")
	p.Expect(exit.OK, "All files of machine demo-cp are gone; see what becomes of its cluster with: polder describe CLUSTER --data-dir DIR\n", "", "machine", "fail", "demo-cp", "--how", "disk", "--yes")
	p.Expect(exit.Usage, "", "the files of a machine do not come back; say --yes if you mean it", "machine", "fail", "demo-cp", "--how", "disk")
	p.Expect(exit.Usage, "", `machines do not fail by "fire"; choose stop, kill, partition, disk or continue`, "machine", "fail", "demo-cp", "--how", "fire")
	p.Expect(exit.Usage, "", "say how it shall fail, with --how stop, kill, partition or disk", "machine", "fail", "demo-cp")
	p.Expect(exit.Failure, "", "failing machine demo-cp: the cluster's host answered: nothing runs on machine demo-cp", "machine", "fail", "demo-cp", "--how", "kill")
}

func TestPowerWithoutHost(t *testing.T) {
	p := clitest.New(t, newRoot)
	dir := fakehost.Prepare(t, p.Dir, clitest.DemoCluster().Cluster)
	p.WriteFile(dir.MachineDir("m").SpecFile(), `{"name":"m"}`)
	p.Expect(exit.Failure, "", "machine m cannot be switched, because its cluster's host must do that: it does not run; the plane starts it, once that runs itself (polder up); its log is "+dir.LogFile(), "machine", "off", "m")
}

func TestLogs(t *testing.T) {
	p := clitest.New(t, newRoot)
	s := clitest.DemoCluster()
	for i := range s.Machines {
		s.Machines[i].Dir = filepath.Join(p.Dir, s.Machines[i].Name)
	}
	s.Machines[0].Processes[1].Log = filepath.Join(p.Dir, "somewhere.log")
	fakehost.Start(t, p.Dir, s)
	p.WriteFile(filepath.Join(p.Dir, "somewhere.log"), "one\ntwo\n")
	p.WriteFile(filepath.Join(p.Dir, "demo-new/log/boot.log"), "booting\n")
	p.WriteFile(filepath.Join(p.Dir, "demo-off/log/coredns.log"), "was here\n")
	p.WriteFile(filepath.Join(p.Dir, "demo-off/log/folder.log/x"), "")

	p.Expect(exit.OK, "one\ntwo\n", "", "machine", "logs", "demo-cp")
	p.Expect(exit.OK, "two\n", "", "machine", "logs", "demo-cp", "kube-apiserver", "--tail", "1")
	p.Expect(exit.OK, "booting\n", "", "machine", "logs", "demo-new")
	p.Expect(exit.OK, "was here\n", "", "machine", "logs", "demo-off", "coredns")
	p.Expect(exit.OK, "", "boot of machine demo-off has logged nothing yet.\n", "machine", "logs", "demo-off")
	p.Expect(exit.Usage, "", `machine demo-off has no process "folder"; choose boot or coredns`, "machine", "logs", "demo-off", "folder")
	p.Expect(exit.Usage, "", `machine demo-cp has no process "x"; choose boot, etcd or kube-apiserver`, "machine", "logs", "demo-cp", "x")
}

func TestCompletion(t *testing.T) {
	p := clitest.New(t, newRoot)
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	expectCompletions(p, map[string][]string{
		"demo-cp\tcontrol-plane, running\ndemo-new\tcontrol-plane, booting (wait-control-plane)\n": {"off", ""},
		"demo-off\tworker, off\n":         {"on", ""},
		"default/demo-off\tworker, off\n": {"on", "default/"},
		"boot\netcd\nkube-apiserver\n":    {"logs", "demo-cp", ""},
		"demo\n":                          {"list", "--cluster", ""},
		"default/demo\n":                  {"list", "--cluster", "default/"},
		"":                                {"describe", "demo-cp", ""},
	})
	twin := clitest.DemoCluster()
	twin.Cluster.Namespace, twin.Cluster.UID = "two", "twin"
	fakehost.Start(t, p.Dir, twin)
	expectCompletions(p, map[string][]string{
		"default/demo-off\tworker, off\ntwo/demo-off\tworker, off\n": {"on", ""},
		"default/demo\ntwo/demo\n":                                   {"list", "--cluster", ""},
	})
}

func expectCompletions(p clitest.Polder, wanted map[string][]string) {
	p.Helper()
	for want, args := range wanted {
		out, _, _ := p.Execute(append([]string{"__complete", "--data-dir", p.Dir, "machine"}, args...)...)
		if got := strings.TrimSuffix(out, ":4\n"); got != want {
			p.Errorf("completing %q gives %q, want %q", args, out, want)
		}
	}
}
