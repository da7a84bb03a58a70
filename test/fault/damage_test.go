package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestRandomDamage changes the files of a store that was stopped at random places. polderd must refuse it with its code, or, if the
// place does not matter, serve all that was ever acknowledged: never anything else.
func TestRandomDamage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := testenv.StartPlane(t)
	w := load(t, p, p.CreateNamespace(t), rnd)
	w.Stop()
	if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
		t.Fatalf("exit code %d", code)
	}
	store := filepath.Join(p.Data, "etcd")
	restore := testenv.SaveTree(t, store)
	var took []time.Duration
	harmless := 0
	for i := range runs(t, 60) {
		what := damage(t, store, rnd)
		begin := time.Now()
		p.Start(t)
		if code, ended := awaitReadyOrExit(t, p); ended {
			took = append(took, time.Since(begin))
			if code != exit.StoreDamaged {
				t.Errorf("%d, %s: exit code %d", i, what, code)
			}
		} else {
			harmless++
			if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
				t.Errorf("%d, %s: it is ready, and wrong: %v", i, what, err)
			}
			p.Kill()
		}
		restore()
	}
	report(t, "refused", took)
	t.Logf("%d refused, %d served what was written, none served anything else", len(took), harmless)
	if len(took) == 0 {
		t.Error("no damage was noticed; the test looks in the wrong place")
	}
}

// damage changes one file of the store and says how.
func damage(t *testing.T, store string, rnd *rand.Rand) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(store, "member", "wal", "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(store, "member", "snap", "db")
	file := append(files, db, db, db)[rnd.IntN(len(files)+3)]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := len(b) // both kinds of files are longer than what is written in them
	for used > 0 && b[used-1] == 0 {
		used--
	}
	at := rnd.IntN(used)
	what := ""
	switch rnd.IntN(4) {
	case 0:
		what = "a bit"
		b[at] ^= 1 << rnd.UintN(8)
	case 1:
		what = "a sector of zeros"
		clear(b[at/512*512 : min(len(b), at/512*512+512)])
	case 2:
		what = "a page of another place"
		from := rnd.IntN(used) / 4096 * 4096
		copy(b[at/4096*4096:], b[from:min(len(b), from+4096)])
	case 3:
		what = "cut"
		b = b[:at]
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s at %d of %s", what, at, filepath.Base(file))
}

// awaitReadyOrExit waits until polderd is ready or has ended.
func awaitReadyOrExit(t *testing.T, p *testenv.Plane) (code int, ended bool) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		if code, ended = p.HasEnded(); ended || p.IsReady() {
			return nil
		}
		return fmt.Errorf("polderd is neither ready nor has it ended")
	})
	return code, ended
}
