package fault

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// maxUnnoticed is how long a cluster may be called ready though its API does not answer.
const maxUnnoticed = 15 * time.Second

// TestHangingAPIServer stops the API server of a cluster, as a machine does that has no memory left. That is said soon, and
// so is that it is well again. (A host that is killed is back before anybody could say so.)
func TestHangingAPIServer(t *testing.T) {
	p := startWithCluster(t)
	var all v1alpha1.WorkloadClusterList
	if err := p.Client(t).List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d clusters, %v", len(all.Items), err)
	}
	o := all.Items[0]
	s, _, err := p.HostStatus(t.Context(), o.Namespace, o.Name)
	if err != nil {
		t.Fatal(err)
	}
	server := 0
	for _, m := range s.Machines {
		for _, process := range m.Processes {
			if process.Name == "kube-apiserver" {
				server = process.PID
			}
		}
	}
	signal := func(pid int, sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(server, syscall.SIGSTOP)
	awaitUnreachable(t, p, &o)
	signal(server, syscall.SIGCONT)
	awaitClusters(t, p)
}

// awaitUnreachable waits until the status says so.
func awaitUnreachable(t *testing.T, p *testenv.Plane, o *v1alpha1.WorkloadCluster) {
	t.Helper()
	begin := time.Now()
	testenv.Eventually(t, wait, func() error {
		if err := p.Client(t).Get(t.Context(), keyOf(o), o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReachable)
		if c == nil || c.Reason != v1alpha1.ReasonUnreachable || o.Status.Phase == v1alpha1.PhaseReady {
			return fmt.Errorf("it is %s: %+v", o.Status.Phase, c)
		}
		return nil
	})
	took := time.Since(begin)
	t.Logf("an API that hangs is said after %s: %s", took.Round(100*time.Millisecond), o.Status.Message)
	if took > maxUnnoticed {
		t.Errorf("that is more than %s", maxUnnoticed)
	}
}
