package reconciletest

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// errCrashed is what a dead process's requests end with once nobody is interested any more.
var errCrashed = errors.New("the process is dead")

// interruptPoint is when a process is interrupted at a write.
type interruptPoint int

const (
	beforeWrite  interruptPoint = iota
	afterWrite                  // though the process does not know of it yet
	afterRefusal                // by the API server, for instance because of a conflict
)

// faultPlan is what goes wrong in one process; the zero plan is that nothing does.
type faultPlan struct {
	// interrupt is called before and after each write, which are numbered from 1, and says whether
	// the process dies now.
	interrupt func(n int, at interruptPoint) bool
	// loseEvery is k if each k-th event of a watch is lost.
	loseEvery int
	// manualReconcile is set if controllers are not run but called.
	manualReconcile bool
}

// faultTransport is between one process and the world. It counts what the process writes, and cuts it off when
// it dies: requests of the dead are not answered, so nothing goes on after them, not even what the
// process would do on an error.
type faultTransport struct {
	plan     faultPlan
	kill     func()          // ends whatever of the process can be ended
	released <-chan struct{} // closed when the dead may go

	mu      sync.Mutex
	writes  []string
	crashed chan struct{} // closed at the death
}

func newFaultTransport(p faultPlan, kill func(), released <-chan struct{}) *faultTransport {
	if p.interrupt == nil {
		p.interrupt = func(int, interruptPoint) bool { return false }
	}
	return &faultTransport{plan: p, kill: kill, released: released, crashed: make(chan struct{})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrap is for rest.Config.
func (w *faultTransport) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case w.hasCrashed():
			<-w.released
			return nil, errCrashed
		case isWrite(r) && !isNoopApply(base, r):
			return w.roundTripWrite(base, r)
		case w.plan.loseEvery > 0 && isWatch(r):
			return watchWithLoss(base, r, w.plan.loseEvery)
		}
		return base.RoundTrip(r)
	})
}

func (w *faultTransport) roundTripWrite(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	n := w.recordWrite(r)
	if w.plan.interrupt(n, beforeWrite) {
		return w.crash()
	}
	res, err := base.RoundTrip(r)
	at := afterWrite
	if err != nil || res.StatusCode >= http.StatusBadRequest {
		at = afterRefusal
	}
	if w.plan.interrupt(n, at) {
		if err == nil {
			_ = res.Body.Close() // nobody will read it
		}
		return w.crash()
	}
	return res, err
}

func (w *faultTransport) recordWrite(r *http.Request) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, describeRequest(r))
	return len(w.writes)
}

// listWrites lists the writes so far.
func (w *faultTransport) listWrites() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

func (w *faultTransport) hasCrashed() bool {
	select {
	case <-w.crashed:
		return true
	default:
		return false
	}
}

func (w *faultTransport) crash() (*http.Response, error) {
	w.mu.Lock()
	if !w.hasCrashed() {
		close(w.crashed)
	}
	w.mu.Unlock()
	w.kill()
	<-w.released
	return nil, errCrashed
}

// isWrite says whether a request changes something. Events and leases are not what a reconciler is
// about, and reviews only ask.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if r.URL.Query().Get("dryRun") != "" {
		return false
	}
	for _, part := range strings.Split(r.URL.Path, "/") {
		switch part {
		case "events", "leases", "authorization.k8s.io", "authentication.k8s.io":
			return false
		}
	}
	return true
}

func isWatch(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (w == "true" || w == "1")
}

// describeRequest says what is written, without the names that differ from run to run.
func describeRequest(r *http.Request) string {
	path := r.URL.Path
	if _, after, ok := strings.Cut(path, "/namespaces/"); ok {
		if _, rest, ok := strings.Cut(after, "/"); ok {
			path = rest
		}
	}
	return r.Method + " " + path
}
