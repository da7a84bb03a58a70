package world

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
)

// maxWatchDuration is how long a watch lasts at most, and if it does not say how long.
const maxWatchDuration = 10 * time.Minute

// matchesSelectors says that an object matches the selectors of a request.
func (q request) matchesSelectors(b []byte) bool {
	if q.labels.Empty() && q.fields.Empty() {
		return true
	}
	u := &unstructured.Unstructured{}
	if json.Unmarshal(b, &u.Object) != nil {
		return false
	}
	return q.labels.Matches(labels.Set(u.GetLabels())) && q.fields.Matches(objectFields{u.Object})
}

// objectFields gives field selectors every string of an object, by its path.
type objectFields struct{ object map[string]any }

var _ fields.Fields = objectFields{}

func (o objectFields) Has(field string) bool { return o.Get(field) != "" }

func (o objectFields) Get(field string) string {
	text, _, _ := unstructured.NestedString(o.object, strings.Split(field, ".")...)
	return text
}

// serveList answers with all objects of a resource.
func (s *store) serveList(w http.ResponseWriter, q request) {
	all, version := s.list(q.id.resource, q.namespace)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"},"items":[`, q.GroupVersion(), q.Kind+"List", version)
	n := 0
	for _, o := range all {
		if !q.matchesSelectors(o) {
			continue
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.Write(o)
	}
	b.WriteString("]}")
	writeBody(w, http.StatusOK, b.Bytes())
}

// serveWatch streams changes until the client leaves, its time is over, or the cluster is gone.
func (s *store) serveWatch(w http.ResponseWriter, q request) {
	// Before the objects are read, so that no change is missed in between.
	changed, stop := s.subscribe()
	defer stop()
	query := q.URL.Query()
	seen, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	t := &watchResponse{ResponseWriter: w, q: q}
	if seen == 0 || initial {
		all, version := s.list(q.id.resource, q.namespace)
		seen = version
		t.writeHeaderOnce()
		for _, o := range all {
			t.writeEvent("ADDED", o)
		}
		if initial {
			t.writeBookmark(version)
		}
	} else if _, _, ok := s.eventsSince(seen, q.id.resource, q.namespace); !ok {
		writeStatus(w, http.StatusGone, metav1.StatusReasonExpired, "what has changed since is no longer known")
		return
	}
	t.writeHeaderOnce()
	end := time.NewTimer(watchDuration(query.Get("timeoutSeconds")))
	defer end.Stop()
	for t.err == nil {
		events, now, ok := s.eventsSince(seen, q.id.resource, q.namespace)
		if !ok {
			return // the client begins anew
		}
		for _, e := range events {
			t.writeEvent(e.eventType, e.object)
		}
		seen = now
		t.flush()
		select {
		case <-changed:
		case <-end.C:
			return
		case <-q.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

func watchDuration(seconds string) time.Duration {
	n, err := strconv.ParseUint(seconds, 10, 16)
	if err != nil || n == 0 {
		return maxWatchDuration
	}
	return min(maxWatchDuration, time.Duration(n)*time.Second)
}

// watchResponse writes a watch to its client.
type watchResponse struct {
	http.ResponseWriter
	q             request
	headerWritten bool
	err           error
}

func (t *watchResponse) writeHeaderOnce() {
	if !t.headerWritten {
		t.headerWritten = true
		t.Header().Set("Content-Type", "application/json")
		t.WriteHeader(http.StatusOK)
	}
}

func (t *watchResponse) writeEvent(kind string, object []byte) {
	if t.err == nil && t.q.matchesSelectors(object) {
		_, t.err = fmt.Fprintf(t, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
}

// writeBookmark marks the end of the initial events.
func (t *watchResponse) writeBookmark(version uint64) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}}`+"\n",
			t.q.GroupVersion(), t.q.Kind, version, metav1.InitialEventsAnnotationKey)
	}
}

func (t *watchResponse) flush() {
	if f, ok := t.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
