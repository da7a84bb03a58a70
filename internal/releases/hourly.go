package releases

import (
	"fmt"
	"sync"
	"time"
)

// perHour is how much one namespace may download, in bytes on disk. What it gives up again stays there for an
// hour or two, so this bounds how much it can pile up by that.
const perHour = 1 << 30

// errSpent is a namespace that has had its share. It says nothing to others that wait for the same download.
var errSpent = fmt.Errorf("this namespace has downloaded %d GiB of releases within an hour, which is all it may; it goes on by itself, sooner with fewer stacks and versions", perHour>>30)

// hourly counts what namespaces download. What was counted fades evenly within an hour, so that there is one
// number for each of them, however many downloads they make.
type hourly struct {
	most int64
	mu   sync.Mutex
	all  map[string]counted
}

// counted is what was left at a time.
type counted struct {
	bytes int64
	at    time.Time
}

func (c counted) now(most int64, t time.Time) int64 {
	faded := float64(most) * t.Sub(c.at).Hours()
	return c.bytes - int64(min(faded, float64(c.bytes)))
}

// check is errSpent if the namespace has had its share. Downloads that are under way are not counted yet; they
// are few.
func (h *hourly) check(namespace string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[namespace].now(h.most, time.Now()) >= h.most {
		return errSpent
	}
	return nil
}

// add counts a download, and forgets namespaces of which nothing is left. The plane's own sources have no
// namespace, and are not counted.
func (h *hourly) add(namespace string, bytes int64) {
	if namespace == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for name, c := range h.all {
		if c.now(h.most, now) == 0 {
			delete(h.all, name)
		}
	}
	if h.all == nil {
		h.all = map[string]counted{}
	}
	h.all[namespace] = counted{h.all[namespace].now(h.most, now) + bytes, now}
}
