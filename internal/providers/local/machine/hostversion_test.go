package machine

import (
	"net/http"
	"strings"
	"testing"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// A host is ended only if it cannot run the machine, and ours can.
func TestRestartOutdatedHost(t *testing.T) {
	versions, err := kubeversion.NewRange("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host    string // version built into it
		machine string
		known   bool // to the host
		renewed bool
	}{
		"of our own version":                         {"v1.37.1", "v1.37.1", false, false},
		"older, and can run it":                      {"v1.36.3", "v1.36.6", false, false},
		"older, and cannot":                          {"v1.36.3", "v1.37.1", false, true},
		"older, and cannot, but has it":              {"v1.36.3", "v1.37.1", true, false},
		"newer, and can no longer":                   {"v1.40.0", "v1.36.6", false, true},
		"so old that it does not say":                {"", "v1.37.1", false, true},
		"so old that it does not say, and can":       {"", "v1.36.6", false, false},
		"that says what nobody can read":             {"newest", "v1.37.1", false, false},
		"so old, of a machine that nobody can read ": {"", "newest", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := hostapi.Status{Kubernetes: c.host, Protocol: hostapi.JoinProtocol}
			r, s := fixture(newFakeHost(t, http.StatusOK, all), true)
			r.Versions = versions
			s.machine.Spec.Version = c.machine
			if err := r.readHostStatus(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if c.known {
				s.status = &hostapi.MachineStatus{}
			}
			err := r.restartOutdatedHost(t.Context(), s)
			if reconcile.IsWait(err) != c.renewed || !c.renewed && err != nil {
				t.Errorf("%v", err)
			}
			if got := condition(s, infrav1.BootedCondition); c.renewed &&
				!strings.HasPrefix(got, "False WaitingForHost: the cluster's host is of an older polderd, which cannot run "+c.machine) {
				t.Error(got)
			}
		})
	}
}

// A host of an older polderd would let the workload cluster configure a new control plane.
func TestHostThatTrustsTheWorkloadCluster(t *testing.T) {
	versions, err := kubeversion.NewRange("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		protocol     int
		controlPlane bool
		renewed      bool
	}{
		"a control plane on an older one": {0, true, true},
		"a worker on an older one":        {0, false, false},
		"a control plane on ours":         {hostapi.JoinProtocol, true, false},
	} {
		r, s := fixture(newFakeHost(t, http.StatusOK, hostapi.Status{Kubernetes: "v1.37.1", Protocol: c.protocol}), c.controlPlane)
		r.Versions = versions
		if err := r.readHostStatus(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := r.restartOutdatedHost(t.Context(), s); reconcile.IsWait(err) != c.renewed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
