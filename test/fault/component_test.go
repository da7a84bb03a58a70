package fault

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestEveryComponentEveryFault breaks each component in each way: the plane must end with a code
// and a reason, never go on half alive, and start again on its data.
func TestEveryComponentEveryFault(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	p.Start(t)
	p.AwaitReady(t)
	var names []string
	for _, c := range p.Status(t).Components {
		names = append(names, c.Name)
	}
	for _, fault := range []string{"panic", "error", "return", "fatal", "crash"} {
		for _, name := range names {
			t.Run(fault+" in "+name, func(t *testing.T) {
				begin := time.Now()
				inject(t, p, fault+" "+name)
				code := p.AwaitExit(t, wait)
				took := time.Since(begin)
				want := exit.ComponentFailed
				if fault == "crash" {
					want = 2 // the Go runtime's own
				}
				if code != want || took > 12*time.Second {
					t.Errorf("ended with %d after %s, want %d", code, took, want)
				}
				if s := p.Status(t); fault != "crash" && (s.Phase != status.Failed || s.Reason == "") {
					t.Errorf("status says %s: %q", s.Phase, s.Reason)
				}
				inject(t, p, "")
				p.Start(t)
				p.AwaitReady(t)
			})
		}
	}
}

func inject(t *testing.T, p *testenv.Plane, fault string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Data, "fault"), []byte(fault), 0o644); err != nil {
		t.Fatal(err)
	}
}
