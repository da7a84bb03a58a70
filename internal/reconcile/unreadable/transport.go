package unreadable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// WrapTransport is a rest.Config's WrapTransport. It looks only at answers that a kindFilter has asked for.
func WrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(r)
		k, ok := r.Context().Value(filterKey{}).(*kindFilter)
		if err != nil || !ok || res.StatusCode != http.StatusOK || !isJSON(res.Header) {
			return res, err
		}
		query := r.URL.Query()
		if isWatch, _ := strconv.ParseBool(query.Get("watch")); isWatch {
			initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
			res.Body = newWatchBody(k, res.Body, initial)
		} else if res.Body, err = k.filterList(res.Body, query.Get("continue") == ""); err != nil {
			return nil, err
		}
		res.ContentLength = -1
		res.Header.Del("Content-Length")
		return res, nil
	})
}

// isJSON is false for kinds built into the API server, which come in another form and can always be read: the API
// server itself has decoded them.
func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && t == runtime.ContentTypeJSON
}

// isDecodeError reports whether an error came from neither the API server, the network nor a context. To be wrong
// about one costs a second list.
func isDecodeError(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	return err != nil && !errors.As(err, &status) && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// filterList replaces the items of a list that cannot be read. whole is false if it begins after its first item.
func (k *kindFilter) filterList(body io.ReadCloser, whole bool) (io.ReadCloser, error) {
	var list map[string]json.RawMessage
	err := json.NewDecoder(body).Decode(&list)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list["items"], &items); err != nil {
		return nil, err
	}
	found, kept := map[types.UID]bool{}, make([]json.RawMessage, 0, len(items))
	for _, raw := range items {
		o := k.examine(raw)
		if o.problem != nil {
			found[o.UID] = true
			raw, _ = k.substitute(o)
		}
		if raw != nil {
			kept = append(kept, raw)
		}
	}
	// A page knows nothing of the objects on other pages.
	var page metav1.ListMeta
	if json.Unmarshal(list["metadata"], &page) == nil && page.Continue == "" && whole {
		k.keepOnly(found)
	}
	if list["items"], err = json.Marshal(kept); err != nil {
		return nil, err
	}
	b, err := json.Marshal(list)
	return io.NopCloser(bytes.NewReader(b)), err
}

// watchBody is the body of a watch without the objects that cannot be read.
type watchBody struct {
	kind    *kindFilter
	body    io.Closer
	frames  *json.Decoder
	out     bytes.Buffer
	initial bool // the frames are still those of objects that were there before
	found   map[types.UID]bool
}

// frame is one event of a watch.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

func newWatchBody(k *kindFilter, body io.ReadCloser, initial bool) *watchBody {
	return &watchBody{kind: k, body: body, frames: json.NewDecoder(body), initial: initial, found: map[types.UID]bool{}}
}

// Close closes the connection.
func (b *watchBody) Close() error { return b.body.Close() }

// Read reads what is left of the frames that were received.
func (b *watchBody) Read(p []byte) (int, error) {
	for b.out.Len() == 0 {
		var f frame
		if err := b.frames.Decode(&f); err != nil {
			return 0, err // as it is: client-go knows the ends of streams by their errors
		}
		if err := b.filter(f); err != nil {
			return 0, err
		}
	}
	return b.out.Read(p)
}

func (b *watchBody) filter(f frame) error {
	switch f.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		b.checkInitialEnd(f)
		return b.write(f)
	default:
		return b.write(f)
	}
	o := b.kind.examine(f.Object)
	switch {
	case o.problem == nil:
		b.kind.forget(o.UID)
		return b.write(f)
	case f.Type == watch.Deleted:
		f.Object = b.kind.describeDeleted(o)
		b.kind.forget(o.UID)
		return b.write(f)
	}
	return b.writeSubstitute(f.Type, o)
}

// writeSubstitute writes what takes the place of an unreadable object. A version that the informer has already is not
// sent again, except among the initial events, where all that is missing would be taken for deleted.
func (b *watchBody) writeSubstitute(event watch.EventType, o examined) error {
	b.found[o.UID] = true
	if instead, hasIt := b.kind.substitute(o); instead != nil && (b.initial || !hasIt) {
		if err := b.write(frame{event, instead}); err != nil {
			return err
		}
	}
	if b.initial {
		return nil
	}
	// The informer must know how far it has come: others wait for that, and a watch begins anew from there.
	mark, err := json.Marshal(map[string]any{
		"apiVersion": b.kind.gvk.GroupVersion().String(), "kind": b.kind.gvk.Kind,
		"metadata": map[string]any{"resourceVersion": o.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return b.write(frame{watch.Bookmark, mark})
}

// checkInitialEnd looks for the frame that ends the initial events.
func (b *watchBody) checkInitialEnd(f frame) {
	var o metav1.PartialObjectMetadata
	if b.initial && json.Unmarshal(f.Object, &o) == nil && o.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		b.initial = false
		b.kind.keepOnly(b.found)
	}
}

func (b *watchBody) write(f frame) error { return json.NewEncoder(&b.out).Encode(f) }
