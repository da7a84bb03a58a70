package rest

import (
	"net/http"
	"sync"
)

// How many watches may be open at once: each costs memory as long as it is.
const (
	watchesPerToken  = 32
	watchesPerTenant = 128
	maxWatches       = 2048
)

// watchCount counts the watches that are open.
type watchCount struct {
	mu    sync.Mutex
	open  map[string]int
	total int
}

// begin takes a place for a watch, or says why there is none. Whoever got one calls end.
func (w *watchCount) begin(tenant, token string) (end func(), refused *Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byTenant, byToken := "tenant "+tenant, "token "+token
	if w.open == nil {
		w.open = map[string]int{}
	}
	switch {
	case w.open[byToken] >= watchesPerToken:
		return nil, tooManyWatches("you have %d watches open, and may have no more; end some of them", watchesPerToken)
	case w.open[byTenant] >= watchesPerTenant:
		return nil, tooManyWatches("the tenant has %d watches open, and may have no more; end some of them", watchesPerTenant)
	case w.total >= maxWatches:
		return nil, tooManyWatches("all %d watches that there can be are open; try again later, or ask with GET", maxWatches)
	}
	w.total++
	w.open[byTenant]++
	w.open[byToken]++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.total--
		for _, key := range []string{byTenant, byToken} {
			if w.open[key]--; w.open[key] == 0 {
				delete(w.open, key)
			}
		}
	}), nil
}

func tooManyWatches(format string, n int) *Problem {
	p := problemf(http.StatusTooManyRequests, format, n)
	p.header = http.Header{"Retry-After": {"10"}}
	return p
}
