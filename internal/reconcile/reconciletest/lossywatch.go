package reconciletest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// resyncPeriod is how soon lost events are made up for.
const resyncPeriod = time.Second

// watchWithLoss makes a watch request of which each k-th event is lost. The last state of an object about which
// an event was lost becomes known with the next resync, as a list would show it: an object that was created and
// deleted meanwhile is never seen.
func watchWithLoss(base http.RoundTripper, r *http.Request, k int) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", jsonOnly(r.Header.Get("Accept")))
	res, err := base.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	out, in := io.Pipe()
	l := &lossyWatch{k: k, from: res.Body, to: in, lost: map[string]watchEvent{}}
	// With streamed lists, existing objects come first; they are the list, and no events.
	l.initialListDone = r.URL.Query().Get("sendInitialEvents") != "true"
	go func() { _ = in.CloseWithError(l.run()) }() // it always returns nil
	res.Body = &body{PipeReader: out, from: res.Body}
	return res, nil
}

// jsonOnly removes media types that read cannot decode.
func jsonOnly(accept string) string {
	var keep []string
	for _, a := range strings.Split(accept, ",") {
		if !strings.Contains(a, "protobuf") && !strings.Contains(a, "cbor") {
			keep = append(keep, a)
		}
	}
	return strings.Join(keep, ",")
}

// body is the response body of a lossy watch. Closing it closes the original one, too.
type body struct {
	*io.PipeReader
	from io.Closer
}

func (b *body) Close() error {
	_ = b.PipeReader.Close() // it always returns nil
	return b.from.Close()
}

// watchEvent is one event of a watch.
type watchEvent struct {
	raw             json.RawMessage
	eventType       watch.EventType
	key             string
	unseen          bool // the process does not know that the object exists
	endsInitialList bool // a bookmark that ends the initial list
}

// lossyWatch forwards the events of one watch, and loses each k-th.
type lossyWatch struct {
	k               int
	from            io.Reader
	to              io.Writer
	initialListDone bool
	seen            int
	order           []string              // of the keys of lost
	lost            map[string]watchEvent // the last event of each object about which one was lost
}

// run forwards events until the watch ends, and returns why it has ended.
func (l *lossyWatch) run() error {
	frames, ended := make(chan watchEvent), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go l.read(frames, done, ended)
	tick := time.NewTicker(resyncPeriod)
	defer tick.Stop()
	for {
		var err error
		select {
		case f := <-frames:
			err = l.handle(f)
		case <-tick.C:
			err = l.flush()
		case err = <-ended:
		}
		if err != nil {
			return err
		}
	}
}

func (l *lossyWatch) read(frames chan<- watchEvent, done <-chan struct{}, ended chan<- error) {
	d := json.NewDecoder(l.from)
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			ended <- err
			return
		}
		var e struct {
			Type   watch.EventType
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			ended <- err
			return
		}
		f := watchEvent{raw: raw, eventType: e.Type, key: e.Object.Namespace + "/" + e.Object.Name}
		f.endsInitialList = f.eventType == watch.Bookmark && e.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		select {
		case frames <- f:
		case <-done:
			return
		}
	}
}

// handle loses or forwards an event.
func (l *lossyWatch) handle(f watchEvent) error {
	l.initialListDone = l.initialListDone || f.endsInitialList
	if !l.initialListDone || f.eventType == watch.Bookmark || f.eventType == watch.Error {
		return l.forward(f)
	}
	l.seen++
	before, was := l.lost[f.key]
	if l.seen%l.k != 0 {
		delete(l.lost, f.key) // a newer event makes up for the lost one
		return l.forward(f)
	}
	f.unseen = f.eventType == watch.Added
	if was {
		f.unseen = before.unseen
	} else {
		l.order = append(l.order, f.key)
	}
	l.lost[f.key] = f
	return nil
}

// flush forwards the last lost event of each object.
func (l *lossyWatch) flush() error {
	for _, key := range l.order {
		f, ok := l.lost[key]
		if !ok || f.unseen && f.eventType == watch.Deleted {
			continue
		}
		delete(l.lost, key)
		if err := l.forward(f); err != nil {
			return err
		}
	}
	l.order = nil
	clear(l.lost)
	return nil
}

func (l *lossyWatch) forward(f watchEvent) error {
	_, err := l.to.Write(append(f.raw, '\n'))
	return err
}
