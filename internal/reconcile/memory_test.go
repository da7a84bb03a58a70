package reconcile

import (
	"sync"
	"testing"
)

func TestMemory(t *testing.T) {
	var m Memory[string, int]
	if v, ok := m.Load("a"); v != 0 || ok {
		t.Errorf("it knows %d at first", v)
	}
	m.Forget("a") // nothing is there yet, and nothing happens
	m.Store("a", 1)
	m.Store("b", 2)
	if v, ok := m.Load("a"); v != 1 || !ok {
		t.Errorf("%d, %t", v, ok)
	}
	got := m.Update("a", func(v int, known bool) int {
		if v != 1 || !known {
			t.Errorf("%d, %t", v, known)
		}
		return 3
	})
	if v, _ := m.Load("a"); got != 3 || v != 3 {
		t.Errorf("%d is returned, and %d is remembered", got, v)
	}
	m.UpdateKnown("a", func(v int) int { return v + 1 })
	m.UpdateKnown("unknown", func(int) int { t.Error("it knows what nobody has told"); return 1 })
	if v, _ := m.Load("a"); v != 4 {
		t.Errorf("%d, want 4", v)
	}
	if _, ok := m.Load("unknown"); ok {
		t.Error("it was made up")
	}
	m.Forget("a")
	if _, ok := m.Load("a"); ok {
		t.Error("it was not forgotten")
	}
	if v, _ := m.Load("b"); v != 2 {
		t.Error("another was forgotten, too")
	}
	m.Update("a", func(_ int, known bool) int {
		if known {
			t.Error("what was forgotten is known")
		}
		return 0
	})
}

// No update is lost, however many there are at the same time; the race detector looks on.
func TestMemoryUpdatesAreAtomic(t *testing.T) {
	var m Memory[int, int]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				m.Update(i%2, func(v int, _ bool) int { return v + 1 })
			}
		})
	}
	all.Wait()
	for k := range 2 {
		if v, _ := m.Load(k); v != 4000 {
			t.Errorf("%d of 4000 updates of %d", v, k)
		}
	}
}
