package rest

import (
	"fmt"
	"testing"
)

func TestWatchCount(t *testing.T) {
	w := &watchCount{}
	take := func(tenant, token string) func() {
		end, refused := w.begin(tenant, token)
		if refused != nil {
			return nil
		}
		return end
	}
	var first func()
	for i := range watchesPerToken {
		end := take("a", "t")
		if end == nil {
			t.Fatalf("watch %d is one too many", i)
		}
		first = end
	}
	if take("a", "t") != nil || take("b", "t") != nil {
		t.Error("one token has more than its part")
	}
	first()
	first() // twice is once
	if take("a", "t") == nil || take("a", "t") != nil {
		t.Error("a watch that ended gives one place")
	}
	n := 0
	for take("a", fmt.Sprint(n)) != nil {
		n++
	}
	if n+watchesPerToken != watchesPerTenant {
		t.Errorf("a tenant has %d watches", n+watchesPerToken)
	}
	n = 0
	for take(fmt.Sprint("x", n/10), fmt.Sprint("y", n)) != nil {
		n++
	}
	if w.total != maxWatches {
		t.Errorf("there are %d watches", w.total)
	}
}
