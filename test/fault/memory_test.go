package fault

import (
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

// What a small machine has, and what an empty plane may keep of it.
const (
	smallMemory = 512 << 20
	emptyMemory = 400 << 20
	// settleMemory is after what time polderd has handed back what its start needed.
	settleMemory = 45 * time.Second
)

// TestSmallMachine runs a plane on one core: it gets ready, never takes more than 512 MiB, and keeps less than 400 MiB.
func TestSmallMachine(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped = true
	p.Env = append(testenv.OwnGC(), "GOMAXPROCS=1")
	begin := time.Now()
	testenv.OnOneCore(t, func() { p.Start(t) })
	p.AwaitReady(t)
	took := time.Since(begin).Round(time.Millisecond)
	atReady := p.Memory(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, p.Client(t), ns)
	if err := p.Client(t).Create(t.Context(), testenv.StubCluster(t, ns, "small")); err != nil {
		t.Fatal(err)
	}
	<-time.After(settleMemory)
	m := p.Memory(t)
	t.Logf("ready on one core after %s with %d MiB; later %s", took, atReady.RSS>>20, m)
	if m.Peak > smallMemory || m.RSS > emptyMemory {
		t.Errorf("more than %d MiB at a time, or %d MiB in the end", smallMemory>>20, emptyMemory>>20)
	}
}
