package releases

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxBytesPerHour is how much one namespace may download, in bytes on disk. A release that it no longer uses
// stays on disk for an hour or two, so this bounds how much it can pile up that way.
const maxBytesPerHour = 1 << 30

// errQuotaExceeded says that a namespace has used up its quota. It says nothing to others that wait for the same
// download.
var errQuotaExceeded = fmt.Errorf(
	"this namespace has downloaded %d GiB of releases within an hour, which is all it may; it goes on by itself, sooner with fewer stacks and versions", maxBytesPerHour>>30,
)

// namespaceQuota counts what namespaces download. What was counted fades evenly within an hour, so that there is
// one number for each namespace, however many downloads it makes.
type namespaceQuota struct {
	bytesPerHour int64
	clock        clock.PassiveClock
	mu           sync.Mutex
	byNamespace  map[string]decayingUsage
}

// decayingUsage is how many bytes counted at a time.
type decayingUsage struct {
	bytes int64
	at    time.Time
}

// bytesAt returns how many bytes still count at time t; most is how many fade in an hour.
func (c decayingUsage) bytesAt(most int64, t time.Time) int64 {
	faded := float64(most) * t.Sub(c.at).Hours()
	return c.bytes - int64(min(faded, float64(c.bytes)))
}

// check returns errQuotaExceeded if the namespace has used up its quota. Downloads that are under way are not
// counted yet; they are few.
func (h *namespaceQuota) check(namespace string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byNamespace[namespace].bytesAt(h.bytesPerHour, h.clock.Now()) >= h.bytesPerHour {
		return errQuotaExceeded
	}
	return nil
}

// add counts a download, and forgets namespaces of which nothing is left. The plane's own sources have no
// namespace, and are not counted.
func (h *namespaceQuota) add(namespace string, bytes int64) {
	if namespace == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for name, c := range h.byNamespace {
		if c.bytesAt(h.bytesPerHour, now) == 0 {
			delete(h.byNamespace, name)
		}
	}
	if h.byNamespace == nil {
		h.byNamespace = map[string]decayingUsage{}
	}
	h.byNamespace[namespace] = decayingUsage{h.byNamespace[namespace].bytesAt(h.bytesPerHour, now) + bytes, now}
}
