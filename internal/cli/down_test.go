package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestDown(t *testing.T) {
	p := newPolder(t, planeRoot)
	p.expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down")
	p.expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down", "--clusters")

	fakehost.Prepare(t, p.dir, hostapi.Cluster{Namespace: "default", Name: "ended", UID: "ended"})
	fakehost.Start(t, p.dir, demo())
	p.expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n1 local cluster keeps running; stop it too with: polder down --clusters --data-dir DIR\n", "", "down")
	fakehost.Start(t, p.dir, hostapi.Status{Cluster: hostapi.Cluster{Namespace: "a", Name: "other", UID: "other"}})
	p.expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n2 local clusters keep running; stop them too with: polder down --clusters --data-dir DIR\n", "", "down")
	p.expect(exit.OK, "No polderd runs on DIR.\nStopped 2 local clusters: a/other, default/demo.\n", "Stopping 2 local clusters …\n", "down", "--clusters")
	p.expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down")
}

func TestPrintStopped(t *testing.T) {
	var b bytes.Buffer
	if err := printStopped(&b, "/d", true, true); err != nil || b.String() != "Stopped. All data is kept in /d; polder up starts it again.\n" {
		t.Errorf("sayStopped() = %q, %v", b.String(), err)
	}
}

// A flag that a command would not follow must not seem to be followed.
func TestKubeconfigIsRefused(t *testing.T) {
	p := newPolder(t, Command)
	for _, flag := range []string{"--kubeconfig", "--context"} {
		for command, args := range map[string][]string{"polder down": {"down"}, "polder stack status": {"stack", "status"}, "polder machine list": {"machine", "list"}, "polder kubectl": {"kubectl", "get", "pods"}} {
			want := flag + " is for the commands on clusters; " + command + " works on the plane of a directory, which you can name with --data-dir"
			if _, errs, code := p.run(append([]string{flag, "x"}, args...)...); code != exit.Usage || !strings.Contains(errs, want) {
				t.Errorf("%s %s ends with %d: %s", flag, command, code, errs)
			}
		}
	}
}
