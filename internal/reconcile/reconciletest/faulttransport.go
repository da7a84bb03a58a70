package reconciletest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errCrashed is the error of a crashed process's requests once they are released.
var errCrashed = errors.New("the process is dead")

// interruptPoint says when a process is interrupted at a write.
type interruptPoint int

const (
	beforeWrite  interruptPoint = iota
	afterWrite                  // though the process does not know of it yet
	afterRefusal                // by the API server, for instance because of a conflict
)

// faultPlan says what goes wrong in one process; with the zero plan, nothing does.
type faultPlan struct {
	// interrupt is called before and after each write, which are numbered from 1, and returns whether the process
	// crashes now.
	interrupt func(n int, at interruptPoint) bool
	// loseEvery is k if each k-th event of a watch is lost; 0 if none is.
	loseEvery int
	// watches is what else is wrong with watches.
	watches watchFault
	// manualReconcile is set if controllers are not run but called by hand.
	manualReconcile bool
}

// faultTransport is the transport of one process. It counts what the process writes, and cuts it off when it
// crashes: requests of a crashed process get no answer, so nothing goes on after them, not even what the process
// would do on an error.
type faultTransport struct {
	plan     faultPlan
	kill     func()          // cancels the context of the process
	released <-chan struct{} // closed when requests of a crashed process may end

	mu               sync.Mutex
	writes           []string
	unguardedDeletes []string       // deletes that do not say of which UID
	expiries         map[string]int // of watches, by path
	crashed          chan struct{}  // closed at the crash
}

func newFaultTransport(p faultPlan, kill func(), released <-chan struct{}) *faultTransport {
	if p.interrupt == nil {
		p.interrupt = func(int, interruptPoint) bool { return false }
	}
	return &faultTransport{plan: p, kill: kill, released: released, crashed: make(chan struct{})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrap is a transport wrapper for rest.Config.
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
		case w.plan.watches.isSet() && isWatch(r):
			return w.watchLate(base, r)
		}
		return base.RoundTrip(r)
	})
}

func (w *faultTransport) roundTripWrite(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	n := w.recordWrite(r)
	w.recordUnguardedDelete(r)
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

// recordUnguardedDelete keeps in mind a request that deletes one object without saying which UID it has.
func (w *faultTransport) recordUnguardedDelete(r *http.Request) {
	if r.Method != http.MethodDelete {
		return
	}
	var o metav1.DeleteOptions
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close() // it was read
		r.Body = io.NopCloser(bytes.NewReader(b))
		if err == nil {
			_ = json.Unmarshal(b, &o) // what cannot be read guards nothing
		}
	}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unguardedDeletes = append(w.unguardedDeletes, describeRequest(r))
}

// listUnguardedDeletes lists the deletes so far that any object of the name would have fallen to.
func (w *faultTransport) listUnguardedDeletes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unguardedDeletes)
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

// crash cuts the process off, and holds its request until it is released.
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

// isWrite says whether a request changes something that a reconciler is about: events and leases are not, and
// reviews only ask.
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

// describeRequest returns method and path of a request, without the namespace, which differs from run to run.
func describeRequest(r *http.Request) string {
	path := r.URL.Path
	if _, after, ok := strings.Cut(path, "/namespaces/"); ok {
		if _, rest, ok := strings.Cut(after, "/"); ok {
			path = rest
		}
	}
	return r.Method + " " + path
}
