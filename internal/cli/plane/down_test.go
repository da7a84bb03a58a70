package plane

import (
	"bytes"
	"testing"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/plane/lifecycle/fakehost"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestDown(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down")
	p.Expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down", "--clusters")

	fakehost.Prepare(t, p.Dir, hostapi.Cluster{Namespace: "default", Name: "ended", UID: "ended"})
	fakehost.Start(t, p.Dir, clitest.DemoCluster())
	p.Expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n1 local cluster keeps running; stop it too with: polder down --clusters --data-dir DIR\n", "",
		"down")
	fakehost.Start(t, p.Dir, hostapi.Status{Cluster: hostapi.Cluster{Namespace: "a", Name: "other", UID: "other"}})
	p.Expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n2 local clusters keep running; stop them too with: polder down --clusters --data-dir DIR\n", "",
		"down")
	p.Expect(exit.OK, "No polderd runs on DIR.\nStopped 2 local clusters: a/other, default/demo.\n", "Stopping 2 local clusters …\n", "down", "--clusters")
	p.Expect(exit.OK, "Nothing to stop: no polderd runs on DIR.\n", "", "down")
}

func TestPrintStopped(t *testing.T) {
	var b bytes.Buffer
	if err := printStopped(&b, "/d", true, true); err != nil || b.String() != "Stopped. All data is kept in /d; polder up starts it again.\n" {
		t.Errorf("sayStopped() = %q, %v", b.String(), err)
	}
}
