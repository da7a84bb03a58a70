package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/history"
	"github.com/polder-kaas/polder/test/testenv"
)

// load starts writers and waits for a random number of acknowledged writes.
func load(t *testing.T, p *testenv.Plane, ns string, rnd *rand.Rand) *history.Writers {
	t.Helper()
	w, err := history.Start(t.Context(), p.RESTConfig(t), ns, fmt.Sprintf("w%d", time.Now().UnixNano()), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	n := 1 + rnd.Int64N(400)
	testenv.Eventually(t, wait, func() error {
		if got := w.Acknowledged(); got < n {
			return fmt.Errorf("%d writes acknowledged, waiting for %d", got, n)
		}
		return nil
	})
	return w
}

// TestKills kills a plane under write load again and again. No acknowledged write may be lost,
// and it must serve again within 15 s.
func TestKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := testenv.StartPlane(t)
	ns := p.CreateNamespace(t)
	var took []time.Duration
	var acked int64
	for i := range runs(t, 100) {
		w := load(t, p, ns, rnd)
		p.Kill()
		w.Stop()
		begin := time.Now()
		p.Start(t)
		p.AwaitReady(t)
		took = append(took, time.Since(begin))
		if took[i] > 15*time.Second {
			t.Errorf("kill %d: ready after %s", i, took[i])
		}
		if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		acked += w.Acknowledged()
	}
	report(t, "ready again", took)
	t.Logf("%d kills, %d acknowledged writes, none lost", len(took), acked)
}

// TestStops ends a plane by SIGTERM under write load: gracefully, within 10 s, nothing lost.
func TestStops(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := testenv.StartPlane(t)
	ns := p.CreateNamespace(t)
	var took []time.Duration
	for i := range runs(t, 50) {
		w := load(t, p, ns, rnd)
		begin := time.Now()
		if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
			t.Fatalf("stop %d: exit code %d", i, code)
		}
		took = append(took, time.Since(begin))
		if took[i] > 10*time.Second {
			t.Errorf("stop %d took %s", i, took[i])
		}
		w.Stop()
		p.Start(t)
		p.AwaitReady(t)
		if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
			t.Fatalf("stop %d: %v", i, err)
		}
	}
	report(t, "stop", took)
}

// TestInterruptedStarts kills and stops a plane while it starts, fresh and on existing data.
func TestInterruptedStarts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	for i := range runs(t, 20) {
		p.Start(t)
		// Mostly early, but not before a Go program can hear a signal.
		after := 200*time.Millisecond + time.Duration(rnd.Int64N(int64(5*time.Second))/int64(1+i%5))
		<-time.After(after)
		if i%2 == 0 {
			p.Kill()
		} else if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
			t.Errorf("stopped %s after its start: exit code %d, %s", after, code, lastLines(p.Log()))
		}
	}
	p.Start(t)
	p.AwaitReady(t)
}

// lastLines are the last words of a process.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "\n")
}

// report prints the spread of some durations.
func report(t *testing.T, what string, ds []time.Duration) {
	t.Helper()
	if len(ds) == 0 {
		return
	}
	slices.Sort(ds)
	t.Logf("%s: median %s, 95th percentile %s, worst %s of %d", what, ds[len(ds)/2].Round(time.Millisecond), ds[len(ds)*95/100].Round(time.Millisecond),
		ds[len(ds)-1].Round(time.Millisecond), len(ds))
}
