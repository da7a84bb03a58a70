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

// longest is how long a watch lasts that does not say so.
const longest = 10 * time.Minute

// chosen says that an object is among those the selectors of a request want.
func (q request) chosen(b []byte) bool {
	if q.labels.Empty() && q.fields.Empty() {
		return true
	}
	u := &unstructured.Unstructured{}
	if json.Unmarshal(b, &u.Object) != nil {
		return false
	}
	return q.labels.Matches(labels.Set(u.GetLabels())) && q.fields.Matches(texts{u.Object})
}

// texts lets every text of an object be selected by, at its path.
type texts struct{ object map[string]any }

var _ fields.Fields = texts{}

func (o texts) Has(field string) bool { return o.Get(field) != "" }

func (o texts) Get(field string) string {
	text, _, _ := unstructured.NestedString(o.object, strings.Split(field, ".")...)
	return text
}

// listAll answers with all objects of a resource.
func (s *store) listAll(w http.ResponseWriter, q request) {
	all, version := s.list(q.id.resource, q.namespace)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"},"items":[`, q.GroupVersion(), q.Kind+"List", version)
	n := 0
	for _, o := range all {
		if !q.chosen(o) {
			continue
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.Write(o)
	}
	b.WriteString("]}")
	raw(w, http.StatusOK, b.Bytes())
}

// watch tells of changes until somebody has enough of it.
func (s *store) watch(w http.ResponseWriter, q request) {
	changed, stop := s.follow()
	defer stop()
	query := q.URL.Query()
	seen, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	t := &telling{ResponseWriter: w, q: q}
	if seen == 0 || initial {
		all, version := s.list(q.id.resource, q.namespace)
		seen = version
		t.begin()
		for _, o := range all {
			t.tell("ADDED", o)
		}
		if initial {
			t.bookmark(version)
		}
	} else if _, _, ok := s.since(seen, q.id.resource, q.namespace); !ok {
		fail(w, http.StatusGone, metav1.StatusReasonExpired, "what has changed since is no longer known")
		return
	}
	t.begin()
	end := time.NewTimer(length(query.Get("timeoutSeconds")))
	defer end.Stop()
	for t.err == nil {
		events, now, ok := s.since(seen, q.id.resource, q.namespace)
		if !ok {
			return // the client begins anew
		}
		for _, e := range events {
			t.tell(e.kind, e.object)
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

func length(seconds string) time.Duration {
	n, err := strconv.ParseUint(seconds, 10, 16)
	if err != nil || n == 0 {
		return longest
	}
	return min(longest, time.Duration(n)*time.Second)
}

// telling is a watch as its client sees it.
type telling struct {
	http.ResponseWriter
	q     request
	begun bool
	err   error
}

func (t *telling) begin() {
	if !t.begun {
		t.begun = true
		t.Header().Set("Content-Type", "application/json")
		t.WriteHeader(http.StatusOK)
	}
}

func (t *telling) tell(kind string, object []byte) {
	if t.err == nil && t.q.chosen(object) {
		_, t.err = fmt.Fprintf(t, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
}

// bookmark says that all there was has been told.
func (t *telling) bookmark(version uint64) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}}`+"\n",
			t.q.GroupVersion(), t.q.Kind, version, metav1.InitialEventsAnnotationKey)
	}
}

func (t *telling) flush() {
	if f, ok := t.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
