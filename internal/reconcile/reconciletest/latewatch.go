package reconciletest

import (
	"io"
	"net/http"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// watchFault says what is wrong with the watches of a process, beside lost events; with the zero value, nothing is.
type watchFault struct {
	delay       time.Duration // each event comes so late
	resource    string        // only watches of this resource, such as "configmaps", are late; empty: all
	repeat      bool          // each event comes twice
	expireAfter int           // a watch expires after so many events, twice for each resource; 0: never
}

func (f watchFault) isSet() bool { return f != watchFault{} }

// delayOf is how late events of a watch are.
func (f watchFault) delayOf(r *http.Request) time.Duration {
	if f.resource != "" && path.Base(r.URL.Path) != f.resource {
		return 0
	}
	return f.delay
}

// maxExpiries is how often watches of a resource expire: client-go waits longer each time before it lists again.
const maxExpiries = 2

// expired is what an API server says when it does not know any more what happened since the version it was asked for.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// watchLate makes a watch request whose events come as the fault says. Those of a streamed list come as they are.
func (w *faultTransport) watchLate(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", jsonOnly(r.Header.Get("Accept")))
	res, err := base.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	out, in := io.Pipe()
	l := &lateWatch{
		fault: w.plan.watches, delay: w.plan.watches.delayOf(r), from: res.Body, to: in,
		initialListDone: r.URL.Query().Get("sendInitialEvents") != "true",
		mayExpire:       func() bool { return w.countExpiry(r.URL.Path) <= maxExpiries },
	}
	go func() { _ = in.CloseWithError(l.run()) }() // it always returns nil
	res.Body = &body{PipeReader: out, from: res.Body}
	return res, nil
}

// countExpiry counts the watches of a path that have expired.
func (w *faultTransport) countExpiry(of string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expiries == nil {
		w.expiries = map[string]int{}
	}
	w.expiries[of]++
	return w.expiries[of]
}

// lateWatch forwards the events of one watch, late or repeatedly, until it expires.
type lateWatch struct {
	fault           watchFault
	delay           time.Duration
	from            io.Reader
	to              io.Writer
	initialListDone bool
	forwarded       int
	mayExpire       func() bool
}

// lateEvent is an event that is forwarded when it is due.
type lateEvent struct {
	watchEvent
	due time.Time
}

// run forwards events until the watch ends, and returns why it has ended.
func (l *lateWatch) run() error {
	frames, ended := make(chan watchEvent), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go (&lossyWatch{from: l.from}).read(frames, done, ended)
	var waiting []lateEvent
	for {
		var next <-chan time.Time
		if len(waiting) > 0 {
			next = time.After(time.Until(waiting[0].due))
		}
		var err error
		select {
		case f := <-frames:
			due := time.Now()
			if l.initialListDone {
				due = due.Add(l.delay)
			}
			l.initialListDone = l.initialListDone || f.endsInitialList
			waiting = append(waiting, lateEvent{f, due})
		case <-next:
			err = l.forward(waiting[0].watchEvent)
			waiting = waiting[1:]
		case err = <-ended:
		}
		if err != nil {
			return err
		}
	}
}

// forward passes an event on, perhaps twice, and ends the watch if it is to expire.
func (l *lateWatch) forward(f watchEvent) error {
	times := 1
	isEvent := f.eventType != watch.Bookmark && f.eventType != watch.Error
	if l.fault.repeat && isEvent {
		times = 2
	}
	for range times {
		if _, err := l.to.Write(append(f.raw, '\n')); err != nil {
			return err
		}
	}
	if isEvent {
		l.forwarded++
	}
	if n := l.fault.expireAfter; n == 0 || l.forwarded < n || !l.mayExpire() {
		return nil
	}
	if _, err := io.WriteString(l.to, expired); err != nil {
		return err
	}
	return io.EOF
}
