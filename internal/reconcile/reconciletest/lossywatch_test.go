package reconciletest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

func newWatchEvent(kind watch.EventType, name string, version int) watchEvent {
	return watchEvent{raw: fmt.Appendf(nil, `{"say":"%s %s %d"}`, kind, name, version), eventType: kind, key: "/" + name}
}

// forwardedEvents returns the events that were forwarded.
func forwardedEvents(t *testing.T, b *bytes.Buffer) string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		var v struct{ Say string }
		if line != "" && json.Unmarshal([]byte(line), &v) != nil {
			t.Fatalf("not one document in a line: %s", b)
		}
		out = append(out, v.Say)
	}
	b.Reset()
	return strings.Join(out, ", ")
}

func TestLossyWatch(t *testing.T) {
	const added, modified, deleted = watch.Added, watch.Modified, watch.Deleted
	for name, c := range map[string]struct {
		k      int
		frames []watchEvent
		atOnce string
		later  string
	}{
		"all, of which the last becomes known": {
			1, []watchEvent{newWatchEvent(added, "a", 1), newWatchEvent(modified, "a", 2), newWatchEvent(added, "b", 3)}, "", "MODIFIED a 2, ADDED b 3",
		},
		"what came and went is never seen":   {1, []watchEvent{newWatchEvent(added, "a", 1), newWatchEvent(deleted, "a", 2)}, "", ""},
		"the end of what was known is seen":  {1, []watchEvent{newWatchEvent(modified, "a", 1), newWatchEvent(deleted, "a", 2)}, "", "DELETED a 2"},
		"what went and came again is as new": {1, []watchEvent{newWatchEvent(deleted, "a", 1), newWatchEvent(added, "a", 2)}, "", "ADDED a 2"},
		"every second": {
			2, []watchEvent{newWatchEvent(added, "a", 1), newWatchEvent(added, "b", 2), newWatchEvent(added, "c", 3), newWatchEvent(added, "d", 4)},
			"ADDED a 1, ADDED c 3", "ADDED b 2, ADDED d 4",
		},
		"something newer makes up for it": {2, []watchEvent{newWatchEvent(added, "a", 1), newWatchEvent(modified, "b", 2), newWatchEvent(modified, "b", 3)},
			"ADDED a 1, MODIFIED b 3", ""},
		"bookmarks and errors are no news": {
			1, []watchEvent{newWatchEvent(watch.Bookmark, "", 1), newWatchEvent(watch.Error, "", 2)}, "BOOKMARK  1, ERROR  2", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := &lossyWatch{k: c.k, to: &out, lost: map[string]watchEvent{}, initialListDone: true}
			for _, f := range c.frames {
				if err := l.handle(f); err != nil {
					t.Fatal(err)
				}
			}
			if got := forwardedEvents(t, &out); got != c.atOnce {
				t.Errorf("at once: %s, want %s", got, c.atOnce)
			}
			if err := l.flush(); err != nil {
				t.Fatal(err)
			}
			if got := forwardedEvents(t, &out); got != c.later {
				t.Errorf("with the resync: %s, want %s", got, c.later)
			}
			if err := l.flush(); err != nil || out.Len() > 0 {
				t.Errorf("%v, with the next resync: %s", err, out.String())
			}
		})
	}
}

// Objects of the initial list are not lost where lists are streamed.
func TestLossyWatchAfterTheList(t *testing.T) {
	var out bytes.Buffer
	l := &lossyWatch{k: 1, to: &out, lost: map[string]watchEvent{}}
	end := newWatchEvent(watch.Bookmark, "", 2)
	end.endsInitialList = true
	for _, f := range []watchEvent{newWatchEvent(watch.Added, "a", 1), end, newWatchEvent(watch.Added, "b", 3)} {
		if err := l.handle(f); err != nil {
			t.Fatal(err)
		}
	}
	if got := forwardedEvents(t, &out); got != "ADDED a 1, BOOKMARK  2" {
		t.Errorf("passed on: %s", got)
	}
}
