package localcluster

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestSelectByName(t *testing.T) {
	in := func(namespace, name string) lifecycle.LocalCluster {
		return lifecycle.LocalCluster{Status: hostapi.Status{Cluster: hostapi.Cluster{Namespace: namespace, Name: name}}}
	}
	these := List{in("a", "x"), in("b", "x"), in("b", "y")}
	for name, want := range map[string]string{"x": "a/x b/x", "b/x": "b/x", "y": "b/y", "a/y": `there is no local cluster "a/y"; choose from: a/x, b/x, b/y`} {
		found, err := these.SelectByName(name)
		var names []string
		for _, l := range found {
			names = append(names, QualifiedName(l))
		}
		if got := strings.Join(names, " ") + output.Message(err); got != want {
			t.Errorf("named(%s): %s, want %s", name, got, want)
		}
	}
	if _, err := (List{}).SelectByName("x"); output.Message(err) != `there is no local cluster "x", and no other in this data directory` {
		t.Errorf("where there are none: %v", err)
	}
}

func TestDescribeLocalClusters(t *testing.T) {
	these := List{{Status: clitest.DemoCluster(), Running: true}, {Running: true, HostError: hostapi.ErrNotRunning}, {HostError: hostapi.ErrNotRunning}}
	if got, want := Describe(these.Reports()), "2 running, 1 not; 243 MB in all their processes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	old := clitest.DemoCluster()
	old.Confinement = nil // a host of an older polderd
	if got, want := Describe(List{{Status: old, Running: true}}.Reports()), "1 not confined: polder down --clusters"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Describe(these[2:].Reports()), "0 running, 1 not"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
