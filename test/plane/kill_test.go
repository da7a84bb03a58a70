package plane

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/history"
	"github.com/polder-kaas/polder/test/testenv"
)

type writers struct{ *history.Writers }

func startWriters(t *testing.T, p *testenv.Plane, ns string) writers {
	t.Helper()
	w, err := history.Start(t.Context(), p.RESTConfig(t), ns, fmt.Sprintf("w%d", time.Now().UnixNano()), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return writers{w}
}

func (w writers) await(t *testing.T, n int64) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		if got := w.Acknowledged(); got < n {
			return fmt.Errorf("%d writes acknowledged, waiting for %d", got, n)
		}
		return nil
	})
}

func (w writers) stop() { w.Stop() }

func (w writers) verify(t *testing.T, p *testenv.Plane) {
	t.Helper()
	if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
		t.Error(err)
	}
}

// killUnderLoad kills the plane at a random moment while clients write, starts it again, and
// checks that everything it acknowledged is there.
func killUnderLoad(t *testing.T, p *testenv.Plane, ns string) {
	w := startWriters(t, p, ns)
	after := 20 + rand.Int64N(200)
	w.await(t, after)
	p.Kill()
	w.stop()
	begin := time.Now()
	p.Start(t)
	p.AwaitReady(t)
	w.verify(t, p)
	t.Logf("killed after %d acknowledged writes, ready after %s", w.Acknowledged(), time.Since(begin).Round(time.Millisecond))
}
