package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// polder runs a command on a data directory.
type polder struct {
	*testing.T
	dir     string
	command func() *cobra.Command
}

// newPolder has a data directory of its own; command makes the root that it runs.
func newPolder(t *testing.T, command func() *cobra.Command) polder {
	t.Helper()
	return polder{T: t, dir: t.TempDir(), command: command}
}

func (p polder) run(args ...string) (stdout, stderr string, code int) {
	p.Helper()
	var out, errs bytes.Buffer
	c := p.command()
	c.SetArgs(append([]string{"--data-dir", p.dir}, args...))
	c.SetOut(&out)
	c.SetErr(&errs)
	err := c.ExecuteContext(p.Context())
	return out.String(), errs.String() + Message(err), exit.Code(err)
}

// expect compares everything a command says; DIR stands for the data directory.
func (p polder) expect(code int, stdout, stderr string, args ...string) {
	p.Helper()
	fill := strings.NewReplacer("DIR", p.dir)
	out, errs, got := p.run(args...)
	if got != code || out != fill.Replace(stdout) || errs != fill.Replace(stderr) {
		p.Errorf("polder %s ends with %d, want %d\nstdout (-want +got):\n%s\nstderr (-want +got):\n%s", strings.Join(args, " "), got, code,
			cmp.Diff(fill.Replace(stdout), out), cmp.Diff(fill.Replace(stderr), errs))
	}
}

func machineRoot() *cobra.Command {
	root, g := newRoot(polderName)
	root.AddCommand(newMachineCommand(g))
	return root
}

func TestMachineCommandsWithoutMachines(t *testing.T) {
	p := newPolder(t, machineRoot)
	p.expect(exit.OK, "", "There are no machines of local clusters in DIR.\n", "machine", "list")
	p.expect(exit.OK, "[]\n", "", "machine", "list", "-o", "json")
	p.expect(exit.Usage, "", `there is no machine "x", and no other in DIR`, "machine", "describe", "x")
	p.expect(exit.Usage, "", `there is no local cluster "x", and no other in this data directory`, "machine", "list", "--cluster", "x")
	fakehost.Prepare(t, p.dir, demo().Cluster)
	p.expect(exit.OK, "", "There are no machines of cluster demo in DIR.\n", "machine", "list", "--cluster", "demo")
}

func TestMachineCommandsWithBadInput(t *testing.T) {
	p := newPolder(t, machineRoot)
	p.expect(exit.Usage, "", `polder machine has no command "lst"; did you mean list?; see: polder machine --help`, "machine", "lst")
	p.expect(exit.Usage, "", `polder machine has no command "frobnicate"; see: polder machine --help`, "machine", "frobnicate")
	p.expect(exit.Usage, "", `polder machine off needs the name of a machine; polder machine list shows all`, "machine", "off")
	p.expect(exit.Usage, "", `polder machine on takes no argument "b"; see: polder machine on --help`, "machine", "on", "a", "b")
	p.expect(exit.Usage, "", `polder machine logs takes no argument "c"; see: polder machine logs --help`, "machine", "logs", "a", "b", "c")
	p.expect(exit.Usage, "", `--tail -2 is no number of lines; see: polder machine logs --help`, "machine", "logs", "a", "--tail", "-2")
}

func TestMachineStructure(t *testing.T) {
	p := newPolder(t, machineRoot)
	fakehost.Start(t, p.dir, demo())
	out, _, code := p.run("machine", "list", "-o", "json")
	var got []struct {
		Namespace, Cluster, Name, State, Detail string
		Host                                    struct{ PID int }
		Processes                               []hostapi.ProcessStatus
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exit.OK || len(got) != 3 {
		t.Fatalf("list -o json ends with %d, %v:\n%s", code, err, out)
	}
	if m := got[1]; m.Namespace != "default" || m.Cluster != "demo" || m.Name != "demo-new" || m.State != "booting" || m.Detail != "wait-control-plane" || m.Host.PID != 100 || len(m.Processes) != 2 {
		t.Errorf("list -o json says %+v", m)
	}
	if out, _, code := p.run("machine", "describe", "demo-off", "-o", "yaml"); code != exit.OK || !strings.Contains(out, "state: \"off\"\n") {
		t.Errorf("describe -o yaml ends with %d:\n%s", code, out)
	}
}

func TestPower(t *testing.T) {
	p := newPolder(t, machineRoot)
	fakehost.Start(t, p.dir, demo())
	p.expect(exit.OK, "Machine demo-cp is on already.\n", "", "machine", "on", "demo-cp")
	p.expect(exit.OK, "Pulled the plug of machine demo-cp; switch it on again with: polder machine on demo-cp --data-dir DIR\n", "", "machine", "off", "demo-cp")
	p.expect(exit.OK, "Machine default/demo-cp is off already.\n", "", "machine", "off", "default/demo-cp")
	p.expect(exit.OK, "Switched on machine default/demo-cp; see how it starts with: polder machine list --data-dir DIR\n", "", "machine", "on", "default/demo-cp")
	p.expect(exit.OK, "Machine demo-cp is on already.\n", "", "machine", "on", "demo-cp")
}

func TestPowerWithoutHost(t *testing.T) {
	p := newPolder(t, machineRoot)
	dir := fakehost.Prepare(t, p.dir, demo().Cluster)
	p.write(dir.MachineDir("m").SpecFile(), `{"name":"m"}`)
	p.expect(exit.Failure, "", "machine m cannot be switched, because its cluster's host must do that: it does not run; the plane starts it, once that runs itself (polder up); its log is "+dir.LogFile(), "machine", "off", "m")
}

func (p polder) write(file, text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func TestLogs(t *testing.T) {
	p := newPolder(t, machineRoot)
	s := demo()
	for i := range s.Machines {
		s.Machines[i].Dir = filepath.Join(p.dir, s.Machines[i].Name)
	}
	s.Machines[0].Processes[1].Log = filepath.Join(p.dir, "somewhere.log")
	fakehost.Start(t, p.dir, s)
	p.write(filepath.Join(p.dir, "somewhere.log"), "one\ntwo\n")
	p.write(filepath.Join(p.dir, "demo-new/log/boot.log"), "booting\n")
	p.write(filepath.Join(p.dir, "demo-off/log/coredns.log"), "was here\n")
	p.write(filepath.Join(p.dir, "demo-off/log/folder.log/x"), "")

	p.expect(exit.OK, "one\ntwo\n", "", "machine", "logs", "demo-cp")
	p.expect(exit.OK, "two\n", "", "machine", "logs", "demo-cp", "kube-apiserver", "--tail", "1")
	p.expect(exit.OK, "booting\n", "", "machine", "logs", "demo-new")
	p.expect(exit.OK, "was here\n", "", "machine", "logs", "demo-off", "coredns")
	p.expect(exit.OK, "", "boot of machine demo-off has logged nothing yet.\n", "machine", "logs", "demo-off")
	p.expect(exit.Usage, "", `machine demo-off has no process "folder"; choose boot or coredns`, "machine", "logs", "demo-off", "folder")
	p.expect(exit.Usage, "", `machine demo-cp has no process "x"; choose boot, etcd or kube-apiserver`, "machine", "logs", "demo-cp", "x")
}

func TestCompletion(t *testing.T) {
	p := newPolder(t, machineRoot)
	fakehost.Start(t, p.dir, demo())
	expectCompletions(p, map[string][]string{
		"demo-cp\tcontrol-plane, running\ndemo-new\tcontrol-plane, booting (wait-control-plane)\n": {"off", ""},
		"demo-off\tworker, off\n":         {"on", ""},
		"default/demo-off\tworker, off\n": {"on", "default/"},
		"boot\netcd\nkube-apiserver\n":    {"logs", "demo-cp", ""},
		"demo\n":                          {"list", "--cluster", ""},
		"default/demo\n":                  {"list", "--cluster", "default/"},
		"":                                {"describe", "demo-cp", ""},
	})
	twin := demo()
	twin.Cluster.Namespace, twin.Cluster.UID = "two", "twin"
	fakehost.Start(t, p.dir, twin)
	expectCompletions(p, map[string][]string{
		"default/demo-off\tworker, off\ntwo/demo-off\tworker, off\n": {"on", ""},
		"default/demo\ntwo/demo\n":                                   {"list", "--cluster", ""},
	})
}

func expectCompletions(p polder, wanted map[string][]string) {
	p.Helper()
	for want, args := range wanted {
		out, _, _ := p.run(append([]string{"__complete", "--data-dir", p.dir, "machine"}, args...)...)
		if got := strings.TrimSuffix(out, ":4\n"); got != want {
			p.Errorf("completing %q gives %q, want %q", args, out, want)
		}
	}
}
