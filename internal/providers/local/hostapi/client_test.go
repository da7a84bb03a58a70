package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// serve answers on the socket of a new directory; sockets need a short path.
func serve(t *testing.T, h http.HandlerFunc) Dir {
	t.Helper()
	dir := Dir(processtest.ShortDir(t, "host"))
	l, err := net.Listen("unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return dir
}

func TestClientAsks(t *testing.T) {
	m := MachineSpec{Name: "a.b", Node: "n", UserData: []byte("x")}
	for name, c := range map[string]struct {
		call func(context.Context, *Client) error
		want string // method, path and query
		body string
	}{
		"status":      {call: func(ctx context.Context, c *Client) error { _, err := c.Status(ctx); return err }, want: "GET /status"},
		"watch":       {call: func(ctx context.Context, c *Client) error { _, err := c.Watch(ctx, 7); return err }, want: "GET /status?since=7"},
		"put":         {call: func(ctx context.Context, c *Client) error { return c.PutMachine(ctx, m) }, want: "PUT /machines/a.b", body: `"userData":"eA=="`},
		"drain":       {call: func(ctx context.Context, c *Client) error { return c.DrainMachine(ctx, "a") }, want: "POST /machines/a/drain"},
		"off":         {call: func(ctx context.Context, c *Client) error { return c.SetPower(ctx, "a", false) }, want: "POST /machines/a/power?on=false"},
		"on":          {call: func(ctx context.Context, c *Client) error { return c.SetPower(ctx, "a", true) }, want: "POST /machines/a/power?on=true"},
		"fail":        {call: func(ctx context.Context, c *Client) error { return c.FailMachine(ctx, "a", FailStop) }, want: "POST /machines/a/fail?how=stop"},
		"delete":      {call: func(ctx context.Context, c *Client) error { return c.DeleteMachine(ctx, "a") }, want: "DELETE /machines/a"},
		"end":         {call: func(ctx context.Context, c *Client) error { return c.Stop(ctx, false) }, want: "POST /stop?now=false"},
		"end at once": {call: func(ctx context.Context, c *Client) error { return c.Stop(ctx, true) }, want: "POST /stop?now=true"},
		"a name that is none": {
			call: func(ctx context.Context, c *Client) error { return c.DeleteMachine(ctx, "../status?x") }, want: "DELETE /machines/..%2Fstatus%3Fx",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 2)
			dir := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				asked <- r.Method + " " + r.RequestURI
				asked <- string(b)
				_ = json.NewEncoder(w).Encode(Status{Revision: 8})
			})
			if err := c.call(t.Context(), NewClient(dir)); err != nil {
				t.Fatal(err)
			}
			if got := <-asked; got != c.want {
				t.Errorf("asked %q, want %q", got, c.want)
			}
			if got := <-asked; !strings.Contains(got, c.body) {
				t.Errorf("sent %q, want %q in it", got, c.body)
			}
		})
	}
}

func TestClientReadsTheStatus(t *testing.T) {
	want := Status{Revision: 3, PID: 5, Machines: []MachineStatus{{Name: "a", Boot: BootStatus{Done: true}, Processes: []ProcessStatus{{Name: "etcd"}}}}}
	dir := serve(t, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(want) })
	got, err := NewClient(dir).Status(t.Context())
	if err != nil || !cmp.Equal(want, got, cmp.Comparer(func(a, b Cluster) bool { return a == b })) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestClientErrors(t *testing.T) {
	answer := func(code int, text string) func(*testing.T) Dir {
		return func(t *testing.T) Dir {
			return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, text) })
		}
	}
	for name, c := range map[string]struct {
		dir        func(*testing.T) Dir
		want       string
		notRunning bool
	}{
		"no directory": {dir: func(*testing.T) Dir { return "/nowhere" }, want: "not running", notRunning: true},
		"no socket":    {dir: func(t *testing.T) Dir { return Dir(processtest.ShortDir(t, "host")) }, want: "not running", notRunning: true},
		"a socket that was left": {dir: func(t *testing.T) Dir {
			d := Dir(processtest.ShortDir(t, "host"))
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.Socket(), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
			return d
		}, want: "not running", notRunning: true},
		"it ends before it answers": {dir: func(t *testing.T) Dir {
			return serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, want: "not running", notRunning: true},
		"it refuses":             {dir: answer(http.StatusConflict, "there is no machine a\n"), want: "the cluster's host answered: there is no machine a"},
		"it refuses with a code": {dir: answer(http.StatusNotFound, ""), want: "the cluster's host answered: 404 Not Found"},
		"it refuses at length":   {dir: answer(http.StatusConflict, strings.Repeat("x", 2*maxError)), want: strings.Repeat("x", maxError)},
		"no JSON":                {dir: answer(http.StatusOK, "hello"), want: "reading the answer"},
		"half of an answer":      {dir: answer(http.StatusOK, `{"revision":1,`), want: "reading the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewClient(c.dir(t)).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), strings.Repeat("x", maxError+1)) {
				t.Errorf("error %.300v, want %.300q in it", err, c.want)
			}
			if errors.Is(err, ErrNotRunning) != c.notRunning {
				t.Errorf("not running: %t, want %t: %v", !c.notRunning, c.notRunning, err)
			}
		})
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	dir := serve(t, func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := NewClient(dir).Watch(ctx, 1); ended <- err }()
	<-asked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotRunning) {
		t.Errorf("error %v", err)
	}
}

// A host that is frozen holds the connection for ever.
func TestWatchHasADeadline(t *testing.T) {
	var left time.Duration
	c := &Client{http: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		at, ok := r.Context().Deadline()
		if ok {
			left = time.Until(at)
		}
		return nil, io.EOF
	})}}
	if _, err := c.Watch(t.Context(), 1); err == nil {
		t.Error("no error")
	}
	if left < WatchTimeout || left > 2*WatchTimeout {
		t.Errorf("the deadline is in %s, want a little more than %s", left, WatchTimeout)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
