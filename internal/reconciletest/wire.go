package reconciletest

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// errDead is what a dead process's requests end with once nobody is interested any more.
var errDead = errors.New("the process is dead")

// moment is when a process is interrupted at a write.
type moment int

const (
	beforeWrite  moment = iota
	afterWrite          // though the process does not know of it yet
	afterRefusal        // by the API server, for instance because of a conflict
)

// plan is what goes wrong in one process; the zero plan is that nothing does.
type plan struct {
	// interrupt is called before and after each write, which are numbered from 1, and says whether
	// the process dies now.
	interrupt func(n int, at moment) bool
	// lose is k if each k-th event of a watch is lost.
	lose int
	// byHand is set if controllers are not run but called.
	byHand bool
}

// wire is between one process and the world. It counts what the process writes, and cuts it off when
// it dies: requests of the dead are not answered, so nothing goes on after them, not even what the
// process would do on an error.
type wire struct {
	plan  plan
	kill  func()          // ends whatever of the process can be ended
	grave <-chan struct{} // closed when the dead may go

	mu     sync.Mutex
	writes []string
	dead   chan struct{} // closed at the death
}

func newWire(p plan, kill func(), grave <-chan struct{}) *wire {
	if p.interrupt == nil {
		p.interrupt = func(int, moment) bool { return false }
	}
	return &wire{plan: p, kill: kill, grave: grave, dead: make(chan struct{})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrap is for rest.Config.
func (w *wire) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case w.isDead():
			<-w.grave
			return nil, errDead
		case isWrite(r) && !isIdle(base, r):
			return w.write(base, r)
		case w.plan.lose > 0 && isWatch(r):
			return watchLosing(base, r, w.plan.lose)
		}
		return base.RoundTrip(r)
	})
}

func (w *wire) write(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	n := w.count(r)
	if w.plan.interrupt(n, beforeWrite) {
		return w.die()
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
		return w.die()
	}
	return res, err
}

func (w *wire) count(r *http.Request) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, describe(r))
	return len(w.writes)
}

// written lists the writes so far.
func (w *wire) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

func (w *wire) isDead() bool {
	select {
	case <-w.dead:
		return true
	default:
		return false
	}
}

func (w *wire) die() (*http.Response, error) {
	w.mu.Lock()
	if !w.isDead() {
		close(w.dead)
	}
	w.mu.Unlock()
	w.kill()
	<-w.grave
	return nil, errDead
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

// describe says what is written, without the names that differ from run to run.
func describe(r *http.Request) string {
	path := r.URL.Path
	if _, after, ok := strings.Cut(path, "/namespaces/"); ok {
		if _, rest, ok := strings.Cut(after, "/"); ok {
			path = rest
		}
	}
	return r.Method + " " + path
}
