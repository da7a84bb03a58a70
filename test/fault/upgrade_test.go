package fault

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/history"
	"github.com/polder-kaas/polder/test/testenv"
)

// maxGap is how long the API of a plane may be away at an upgrade.
const maxGap = 10 * time.Second

// poller asks an API every 100 ms, and knows the longest time it did not answer.
type poller struct {
	mu    sync.Mutex
	asked int
	last  time.Time
	gap   time.Duration
}

// startPoller asks until the test ends.
func startPoller(t *testing.T, cfg *rest.Config) *poller {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout, cfg.QPS = 2*time.Second, -1
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &poller{last: time.Now()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if b, err := d.RESTClient().Get().AbsPath("/api/v1/namespaces/default").DoRaw(ctx); err == nil && len(b) > 0 {
				p.answered()
			}
			<-tick.C
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return p
}

func (p *poller) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	p.gap, p.last = max(p.gap, time.Since(p.last)), time.Now()
}

// takeGap returns the longest gap since the last call, counting one that has not ended.
func (p *poller) takeGap() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap := max(p.gap, time.Since(p.last))
	p.gap, p.last = 0, time.Now()
	return gap
}

// TestUpgradeAndBack changes polderd below a plane with a cluster for this version, for the one before, and again for
// this one, while somebody writes. Nothing is lost, and the cluster's own API does not notice.
func TestUpgradeAndBack(t *testing.T) {
	const now, before = "polderd", "previous/polderd"
	tree := testenv.NewTree(t, false)
	tree.InstallDaemon(t, before)
	p := startClusterIn(t, tree)
	ns := p.CreateNamespace(t)
	plane, cluster := startPoller(t, p.RESTConfig(t)), startPoller(t, workloadConfig(t, p))
	for i, version := range []string{now, before, now} {
		w, err := history.Start(t.Context(), p.RESTConfig(t), ns, fmt.Sprintf("w%d", i), 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		testenv.Eventually(t, wait, func() error {
			if w.Acknowledged() < 50 {
				return fmt.Errorf("%d writes acknowledged", w.Acknowledged())
			}
			return nil
		})
		objects := snapshot(t, p)
		plane.takeGap()
		cluster.takeGap()
		tree.InstallDaemon(t, version)
		if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
			t.Fatalf("%s: the one before ended with code %d", version, code)
		}
		p.Start(t)
		p.AwaitReady(t)
		gap, workload := plane.takeGap(), cluster.takeGap()
		t.Logf("%s: the plane was away for %s, the cluster for %s", version, gap.Round(time.Millisecond), workload.Round(time.Millisecond))
		if gap > maxGap || workload > 2*time.Second {
			t.Errorf("%s: that is too long", version)
		}
		w.Stop()
		if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		checkNothingLost(t, p, objects)
		awaitClusters(t, p)
	}
	if strings.Contains(p.Log(), "panic:") {
		t.Error("something panicked; see the log")
	}
}

// checkNothingLost compares the objects there are with those there were. Releases of the catalogue that nobody uses may go:
// another polderd offers others.
func checkNothingLost(t *testing.T, p *testenv.Plane, before map[string]string) {
	t.Helper()
	after := snapshot(t, p)
	for key := range before {
		offered := strings.Contains(key, " "+v1alpha1.CatalogueNamespace+"/") && !strings.HasPrefix(key, "clusterstacks ")
		if _, ok := after[key]; !ok && !offered {
			t.Errorf("%s is lost", key)
		}
	}
}

// awaitClusters waits until all clusters are ready.
func awaitClusters(t *testing.T, p *testenv.Plane) {
	t.Helper()
	testenv.Eventually(t, settleTime, func() error {
		var all v1alpha1.WorkloadClusterList
		if err := p.Client(t).List(t.Context(), &all); err != nil {
			return err
		}
		for _, c := range all.Items {
			if c.Status.Phase != v1alpha1.PhaseReady {
				return fmt.Errorf("%s is %s", client.ObjectKeyFromObject(&c), c.Status.Phase)
			}
		}
		return nil
	})
}

// workloadConfig is the administrator's access to the one cluster there is.
func workloadConfig(t *testing.T, p *testenv.Plane) *rest.Config {
	t.Helper()
	var all v1alpha1.WorkloadClusterList
	if err := p.Client(t).List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d clusters, %v", len(all.Items), err)
	}
	return testenv.WorkloadConfig(t, p.Client(t), all.Items[0].Namespace, all.Items[0].Name)
}
