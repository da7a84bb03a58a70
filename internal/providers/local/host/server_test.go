package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRequestsThatAreRefused(t *testing.T) {
	h := newHost(newFixture(t).cfg)
	defer h.forker.Close()
	h.quit = func() { t.Error("it was stopped") }
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/machines/a", "{", "400 reading the machine"},
		{"PUT", "/machines/a", "{}", `409 the machine's name is "", not "a"`},
		{"PUT", "/machines/a", `{"name":"b"}`, `409 the machine's name is "b", not "a"`},
		{"PUT", "/machines/a", `{"name":"a","userData":"` + strings.Repeat("A", maxRequest) + `"}`, "400 reading the machine: http: request body too large"},
		{"POST", "/machines/a/power?on=true", "", "409 there is no machine a"},
		{"DELETE", "/machines/a", "", "200 "},
		{"DELETE", "/machines/..%2f..", "", "200 "}, // nobody of that name is known
		{"GET", "/stop", "", "405"},
		{"GET", "/machines/a", "", "405"},
		{"GET", "/", "", "404"},
	} {
		w := httptest.NewRecorder()
		h.handler().ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestWaitForChange(t *testing.T) {
	h := newHost(newFixture(t).cfg)
	defer h.forker.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.publishChanges(ctx) }()
	defer func() { cancel(); <-done }()
	revision := h.status().Revision
	await := func(ctx context.Context, since int64) <-chan struct{} {
		returned := make(chan struct{})
		go func() { defer close(returned); h.waitForChange(ctx, since) }()
		return returned
	}
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(20 * time.Second):
			t.Fatal("waited in vain:", what)
		}
	}
	within("an older revision", await(t.Context(), revision-1))
	within("that of another host", await(t.Context(), revision+1))
	within("none", await(t.Context(), 0))

	two := []<-chan struct{}{await(t.Context(), revision), await(t.Context(), revision)}
	gone, leave := context.WithCancel(t.Context())
	third := await(gone, revision)
	select {
	case <-two[0]:
		t.Error("there was no news")
	case <-time.After(50 * time.Millisecond):
	}
	leave()
	within("who has left", third)
	h.notifyChange()
	h.notifyChange()
	within("a change", two[0])
	within("a change", two[1])
	if got := h.status().Revision; got <= revision {
		t.Errorf("revision %d after %d", got, revision)
	}
}

// A host whose socket breaks is of no use; it ends, and another can be started.
func TestServeErrors(t *testing.T) {
	f := newFixture(t)
	h := hostWith(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.quit = cancel
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx, brokenListener{}) }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "serving here: broken") {
			t.Errorf("error %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}

type brokenListener struct{}

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("broken") }
func (brokenListener) Close() error              { return nil }
func (brokenListener) Addr() net.Addr            { return fakeAddr{} }

type fakeAddr struct{}

func (fakeAddr) Network() string { return "unix" }
func (fakeAddr) String() string  { return "here" }

// What is being answered when the host ends is answered.
func TestServeAnswersToTheEnd(t *testing.T) {
	f := newFixture(t)
	h := newHost(f.cfg)
	defer h.forker.Close()
	ctx, cancel := context.WithCancel(t.Context())
	h.quit = cancel
	l, err := listenUnix(ctx, f.dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	answering := make(chan struct{}, 100)
	go func() {
		served <- serveHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answering <- struct{}{}
			h.handler().ServeHTTP(w, r)
		}))
	}()
	watched := make(chan error, 1)
	go func() { _, err := f.Watch(t.Context(), h.revision); watched <- err }()
	<-answering
	begin := time.Now()
	if err := f.Stop(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-watched; err != nil {
		t.Error("who watches is left alone:", err)
	}
	if took := time.Since(begin); took > shutdownTimeout/2 || !h.stopAtOnce {
		t.Errorf("took %s, at once: %t", took, h.stopAtOnce)
	}
}
