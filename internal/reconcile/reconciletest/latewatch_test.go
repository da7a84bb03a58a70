package reconciletest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// event is one event of a watch as an API server writes it.
func event(kind, name string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"namespace":"n","name":%q}}}`+"\n", kind, name)
}

// forwardAll runs a late watch on some events and returns what came, each with the second in which it came.
func forwardAll(t *testing.T, l *lateWatch, events ...string) (got []string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		from, feed := io.Pipe()
		out, in := io.Pipe()
		l.from, l.to = from, in
		if l.mayExpire == nil {
			l.mayExpire = func() bool { return true }
		}
		begin := time.Now()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for _, e := range events {
				_, _ = io.WriteString(feed, e)
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			_ = feed.Close()
		})
		wg.Go(func() {
			err := l.run()
			_ = in.CloseWithError(err)
			_ = from.CloseWithError(errors.New("ended"))
		})
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			line := lines.Text()
			if strings.Contains(line, `"Expired"`) {
				line = "expired"
			} else {
				line = strings.Split(line, `"`)[3] + " " + strings.Split(line, `"name":"`)[1][:1]
			}
			got = append(got, fmt.Sprintf("%s at %.0f", line, time.Since(begin).Seconds()))
		}
	})
	return got
}

func TestLateWatch(t *testing.T) {
	events := []string{event("ADDED", "a"), event("BOOKMARK", ""), event("MODIFIED", "a"), event("DELETED", "a")}
	for name, c := range map[string]struct {
		watch lateWatch
		want  string
	}{
		"late":            {lateWatch{delay: 5 * time.Second, initialListDone: true}, "ADDED a at 5, BOOKMARK \" at 6, MODIFIED a at 7, DELETED a at 8"},
		"the list is not": {lateWatch{delay: 5 * time.Second}, "ADDED a at 0, BOOKMARK \" at 1, MODIFIED a at 2, DELETED a at 3"},
		"twice": {lateWatch{fault: watchFault{repeat: true}, initialListDone: true},
			"ADDED a at 0, ADDED a at 0, BOOKMARK \" at 1, MODIFIED a at 2, MODIFIED a at 2, DELETED a at 3, DELETED a at 3"},
		"expires": {lateWatch{fault: watchFault{expireAfter: 2}, initialListDone: true}, "ADDED a at 0, BOOKMARK \" at 1, MODIFIED a at 2, expired at 2"},
		"has expired often enough": {lateWatch{fault: watchFault{expireAfter: 1}, mayExpire: func() bool { return false }, initialListDone: true},
			"ADDED a at 0, BOOKMARK \" at 1, MODIFIED a at 2, DELETED a at 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(forwardAll(t, &c.watch, events...), ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestWatchFaultOfOneResource(t *testing.T) {
	f := watchFault{delay: time.Second, resource: "configmaps"}
	for path, want := range map[string]time.Duration{
		"/api/v1/namespaces/n/configmaps": time.Second, "/api/v1/namespaces/n/secrets": 0, "/apis/g/v1/configmapsets": 0,
	} {
		if got := f.delayOf(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestUnguardedDeletes(t *testing.T) {
	w := newFaultTransport(faultPlan{}, func() {}, nil)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			if b, _ := io.ReadAll(r.Body); r.Method == http.MethodDelete && len(b) == 0 {
				t.Error("the body did not arrive")
			}
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	for _, c := range []struct{ method, body string }{
		{http.MethodDelete, `{"kind":"DeleteOptions","preconditions":{"uid":"u"}}`},
		{http.MethodDelete, `{"kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}`},
		{http.MethodPut, `{}`},
	} {
		r := httptest.NewRequest(c.method, "/api/v1/namespaces/n/configmaps/a", strings.NewReader(c.body))
		if _, err := w.wrap(base).RoundTrip(r); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.listUnguardedDeletes(); len(got) != 1 || got[0] != "DELETE configmaps/a" {
		t.Errorf("%q", got)
	}
}
