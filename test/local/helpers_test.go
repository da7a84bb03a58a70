package local

import (
	"encoding/json"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

func convert(t *testing.T, u *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		t.Fatal(err)
	}
}

// kill ends a process as a power failure would.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("process %d is not one to kill", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// process finds a running process of some control-plane machine.
func process(t *testing.T, s hostapi.Status, name string) (hostapi.MachineStatus, hostapi.ProcessStatus) {
	t.Helper()
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			if p.Name == name && p.PID != 0 {
				return m, p
			}
		}
	}
	t.Fatalf("no machine runs %s: %+v", name, s)
	return hostapi.MachineStatus{}, hostapi.ProcessStatus{}
}

// members asks a machine's etcd for its members, with the machine's own certificates.
func members(t *testing.T, cl *cluster, m hostapi.MachineStatus) []string {
	t.Helper()
	c := testenv.NewEtcdClient(t, cl.config(t), m)
	r, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range r.Members {
		if !x.IsLearner {
			names = append(names, x.Name)
		}
	}
	return names
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}
