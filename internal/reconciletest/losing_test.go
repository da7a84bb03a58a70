package reconciletest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

func frameOf(kind watch.EventType, name string, version int) frame {
	return frame{raw: fmt.Appendf(nil, `{"say":"%s %s %d"}`, kind, name, version), kind: kind, key: "/" + name}
}

// said is what was passed on.
func said(t *testing.T, b *bytes.Buffer) string {
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

func TestLosing(t *testing.T) {
	const added, modified, deleted = watch.Added, watch.Modified, watch.Deleted
	for name, c := range map[string]struct {
		k      int
		frames []frame
		atOnce string
		later  string
	}{
		"all, of which the last becomes known": {
			1, []frame{frameOf(added, "a", 1), frameOf(modified, "a", 2), frameOf(added, "b", 3)}, "", "MODIFIED a 2, ADDED b 3",
		},
		"what came and went is never seen":   {1, []frame{frameOf(added, "a", 1), frameOf(deleted, "a", 2)}, "", ""},
		"the end of what was known is seen":  {1, []frame{frameOf(modified, "a", 1), frameOf(deleted, "a", 2)}, "", "DELETED a 2"},
		"what went and came again is as new": {1, []frame{frameOf(deleted, "a", 1), frameOf(added, "a", 2)}, "", "ADDED a 2"},
		"every second": {
			2, []frame{frameOf(added, "a", 1), frameOf(added, "b", 2), frameOf(added, "c", 3), frameOf(added, "d", 4)}, "ADDED a 1, ADDED c 3", "ADDED b 2, ADDED d 4",
		},
		"something newer makes up for it": {2, []frame{frameOf(added, "a", 1), frameOf(modified, "b", 2), frameOf(modified, "b", 3)}, "ADDED a 1, MODIFIED b 3", ""},
		"bookmarks and errors are no news": {
			1, []frame{frameOf(watch.Bookmark, "", 1), frameOf(watch.Error, "", 2)}, "BOOKMARK  1, ERROR  2", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := &losing{k: c.k, to: &out, lost: map[string]frame{}, listed: true}
			for _, f := range c.frames {
				if err := l.handle(f); err != nil {
					t.Fatal(err)
				}
			}
			if got := said(t, &out); got != c.atOnce {
				t.Errorf("at once: %s, want %s", got, c.atOnce)
			}
			if err := l.flush(); err != nil {
				t.Fatal(err)
			}
			if got := said(t, &out); got != c.later {
				t.Errorf("with the resync: %s, want %s", got, c.later)
			}
			if err := l.flush(); err != nil || out.Len() > 0 {
				t.Errorf("%v, with the next resync: %s", err, out.String())
			}
		})
	}
}

// What is there already is not lost where lists are streamed.
func TestLosingAfterTheList(t *testing.T) {
	var out bytes.Buffer
	l := &losing{k: 1, to: &out, lost: map[string]frame{}}
	end := frameOf(watch.Bookmark, "", 2)
	end.listed = true
	for _, f := range []frame{frameOf(watch.Added, "a", 1), end, frameOf(watch.Added, "b", 3)} {
		if err := l.handle(f); err != nil {
			t.Fatal(err)
		}
	}
	if got := said(t, &out); got != "ADDED a 1, BOOKMARK  2" {
		t.Errorf("passed on: %s", got)
	}
}
