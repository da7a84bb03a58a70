package plane

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestCommandLine goes through what a new user does, in one home directory.
func TestCommandLine(t *testing.T) {
	tree := testenv.NewTree(t, false)
	data := filepath.Join(tree.Home, ".local", "share", "polder")
	t.Cleanup(func() { _, _ = polder(t, tree, "down") })
	expect := func(t *testing.T, code int, words []string, args ...string) string {
		t.Helper()
		out, err := polder(t, tree, args...)
		if exitCode(err) != code {
			t.Errorf("polder %s ends with %v, want code %d:\n%s", strings.Join(args, " "), err, code, out)
		}
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("polder %s does not say %q:\n%s", strings.Join(args, " "), w, out)
			}
		}
		return out
	}

	t.Run("before there is a plane", func(t *testing.T) {
		expect(t, exit.OK, []string{"Nothing to stop: no polderd runs on " + data}, "down")
		expect(t, exit.NotReady, []string{"no plane here yet; polder up makes one"}, "status")
		expect(t, exit.Failure, []string{"no plane in " + data + " yet", "polder up"}, "kubectl", "get", "ns")
		// The shared plane's kubeconfig is for its user, who is the same.
		expect(t, exit.OK, []string{"kube-system"}, "kubectl", "get", "ns", "--kubeconfig", filepath.Join(shared.Get(t).Data, "admin.kubeconfig"))
		expect(t, exit.OK, []string{"polder "}, "version")
		expect(t, exit.OK, []string{"bash completion"}, "completion", "bash")
	})
	t.Run("bad input", func(t *testing.T) {
		for _, args := range [][]string{{"stauts"}, {"up", "--nope"}, {"up", "extra"}, {"status", "-o", "xml"}, {"up", "--timeout", "soon"}} {
			if out := expect(t, exit.Usage, nil, args...); strings.Count(out, "\n") != 1 {
				t.Errorf("polder %s says more than one line:\n%s", strings.Join(args, " "), out)
			}
		}
		expect(t, exit.Usage, []string{"did you mean status?"}, "stauts")
		expect(t, exit.Usage, []string{"not ADDRESS:PORT"}, "up", "--listen", "here")
		expect(t, exit.AddressTaken, []string{"is taken", "--listen"}, "up", "--listen", strings.TrimPrefix(shared.Get(t).Status(t).Address, "https://"))
		expect(t, exit.DataDir, []string{"cannot be made"}, "up", "--data-dir", "/proc/nothing")
	})

	t.Run("two at once start one plane", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				expect(t, exit.OK, []string{"https://127.0.0.1:", "export KUBECONFIG=" + data + "/admin.kubeconfig", "polder down"}, "up", "--listen", "127.0.0.1:0")
			})
		}
		wg.Wait()
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Run("a cluster can be made at once", func(t *testing.T) {
		expect(t, exit.OK, []string{"first would be created"}, "create", "first", "--stack", "scs", "--dry-run=server")
		expect(t, exit.Usage, []string{"podSecurityStandard", "baseline"}, "create", "first", "--stack", "scs", "--set", "podSecurityStandard=basline",
			"--dry-run=server")
	})
	t.Run("up again changes nothing", func(t *testing.T) {
		before := statusJSON(t, tree)
		expect(t, exit.OK, []string{"already runs"}, "up")
		expect(t, exit.OK, []string{"already runs", "To change the address to 127.0.0.1:1, run: polder down"}, "up", "--listen", "127.0.0.1:1")
		if after := statusJSON(t, tree); after.Status.PID != before.Status.PID {
			t.Errorf("up replaced process %d by %d", before.Status.PID, after.Status.PID)
		}
	})
	t.Run("status", func(t *testing.T) {
		expect(t, exit.OK, []string{"It is ready.", "cluster-api", "Kubernetes v1.", "Cluster API v1.", data}, "status")
		s := statusJSON(t, tree)
		if !s.Ready || s.Memory.Resident < 100<<20 || len(s.Status.Components) < 6 {
			t.Errorf("status -o json says %+v", s)
		}
		expect(t, exit.OK, []string{"ready: true"}, "status", "-o", "yaml")
		expect(t, exit.OK, []string{"plane  "}, "version")
	})
	t.Run("kubectl", func(t *testing.T) {
		expect(t, exit.OK, []string{"kube-system"}, "kubectl", "get", "namespaces")
		expect(t, exit.OK, []string{"kube-system"}, "--data-dir", data, "kubectl", "get", "namespaces")
		expect(t, exit.OK, []string{"namespace/made created"}, "kubectl", "create", "namespace", "made")
		expect(t, exit.Failure, []string{"not found"}, "kubectl", "get", "namespace", "nope")
		expect(t, exit.OK, []string{"Client Version: v1.", "Server Version: v1."}, "kubectl", "version")
	})
	t.Run("killed, and up at once", func(t *testing.T) {
		for range 2 {
			pid := statusJSON(t, tree).Status.PID
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			expect(t, exit.OK, []string{"ready after"}, "up")
			if now := statusJSON(t, tree); now.Status.PID == pid || !now.Ready {
				t.Errorf("process %d was killed, now it is %d, ready: %t", pid, now.Status.PID, now.Ready)
			}
		}
	})
	t.Run("down and up again", func(t *testing.T) {
		address := statusJSON(t, tree).Status.Address
		expect(t, exit.OK, []string{"Stopped. All data is kept in " + data}, "down")
		expect(t, exit.OK, []string{"Nothing to stop"}, "down")
		expect(t, exit.NotReady, []string{"It does not run; polder up starts it"}, "status")
		expect(t, exit.OK, []string{"local-scs-1-36     installed", "ready after", address}, "up")
		expect(t, exit.OK, []string{"made"}, "kubectl", "get", "namespaces")
	})
}

type statusOutput struct {
	Ready  bool
	Memory struct{ Resident uint64 }
	Status struct {
		PID        int
		Address    string
		Components []json.RawMessage
	}
}

func statusJSON(t *testing.T, tree testenv.Tree) statusOutput {
	t.Helper()
	out, err := polder(t, tree, "status", "-o", "json")
	var s statusOutput
	if err != nil || json.Unmarshal([]byte(out), &s) != nil {
		t.Fatalf("status -o json: %v\n%s", err, out)
	}
	return s
}
