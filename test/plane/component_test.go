package plane

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// goCrash is what the Go runtime ends a process with when a goroutine panics.
const goCrash = 2

// TestFailingComponentEndsThePlane breaks one component after the other while the plane serves:
// it must end, soon, with the reason, and never go on half alive. The long matrix of every
// component and every fault is in test/fault.
func TestFailingComponentEndsThePlane(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	for _, tt := range []struct {
		fault, component string
		code             int
		reason           string
	}{
		{"panic", "cluster-api", exit.ComponentFailed, "component cluster-api: panic: injected"},
		{"error", "etcd", exit.ComponentFailed, "component etcd: injected"},
		{"fatal", "apiserver", exit.ComponentFailed, "injected by apiserver"},
		{"crash", "kube-controllers", goCrash, ""},
	} {
		t.Run(tt.fault+" in "+tt.component, func(t *testing.T) {
			p.Start(t)
			p.AwaitReady(t)
			inject(t, p, tt.fault+" "+tt.component)
			if code := p.AwaitExit(t, wait); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if s := p.Status(t); tt.reason != "" && (s.Phase != status.Failed || s.Reason != tt.reason) {
				t.Errorf("status says %s: %q, want failed: %q", s.Phase, s.Reason, tt.reason)
			}
			if tt.reason != "" && !strings.Contains(p.Log(), tt.reason) {
				t.Errorf("the log does not give the reason %q", tt.reason)
			}
			inject(t, p, "")
		})
	}
	t.Run("stall in cluster-api", func(t *testing.T) {
		p.Start(t)
		p.AwaitReady(t)
		if code := readyz(t, p); code != http.StatusOK {
			t.Fatalf("/readyz answers %d before the fault", code)
		}
		inject(t, p, "stall cluster-api")
		testenv.Eventually(t, wait, func() error {
			if code := readyz(t, p); code == http.StatusOK {
				return fmt.Errorf("/readyz still answers 200")
			}
			return nil
		})
		testenv.Eventually(t, wait, func() error { // a busy machine may be late with its answer
			out, err := polder(t, p.Tree, "status", "--data-dir", p.Data)
			if exitCode(err) != exit.NotReady || !strings.Contains(out, "1 of its checks fail") {
				return fmt.Errorf("polder status ends with %w and says:\n%s", err, out)
			}
			return nil
		})
	})
}

// A component of another name would run on, beside the test that is to take its place.
func TestOnlyWhatIsThereCanBeLeftOut(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	p.ExcludeComponents(t, "provider-local", "provider-elsewhere")
	p.Start(t)
	if code := p.AwaitExit(t, wait); code != exit.ComponentFailed {
		t.Errorf("exit code %d, want %d", code, exit.ComponentFailed)
	}
	if s := p.Status(t); !strings.Contains(s.Reason, "there is no component provider-elsewhere") {
		t.Errorf("the reason is %q", s.Reason)
	}
}

func inject(t *testing.T, p *testenv.Plane, fault string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Data, "fault"), []byte(fault), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readyz(t *testing.T, p *testenv.Plane) int {
	t.Helper()
	cfg := p.RESTConfig(t)
	cfg.Timeout = time.Minute
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	return statusCode(t, c, http.MethodGet, cfg.Host+"/readyz", "")
}
