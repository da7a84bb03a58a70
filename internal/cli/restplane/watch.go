package restplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
)

// maxEvent is how long one line of a stream may be.
const maxEvent = 8 << 20

// stream is the body of an answer that goes on until it is closed.
type stream struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan struct{}
}

// Close ends what writes the stream, and waits for it.
func (s *stream) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// newStream runs a function that writes changes until its context ends.
func newStream(ctx context.Context, write func(context.Context, *json.Encoder) error) *stream {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &stream{r, cancel, make(chan struct{})}
	go func() {
		defer close(s.done)
		stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		defer stop()
		_ = w.CloseWithError(write(ctx, json.NewEncoder(w))) // of nil it is the end, as of a watch that is over
	}()
	return s
}

// watchClusters follows clusters from a list on. The REST API tells what is there at first; of that, only what is
// another than in the list is a change. Bookmarks are not sent: a watch that ends is begun anew from a list.
func (c *call) watchClusters(ctx context.Context) (any, error) {
	own := *c // the answer is written while the stream goes on
	w := &clusterWatch{call: &own, only: c.selectedName()}
	if v := c.query.Get("resourceVersion"); v != "" {
		var ok bool
		if w.before, ok = c.take(v); !ok {
			return nil, apierrors.NewResourceExpired("this list is not known any more: list again")
		}
	}
	streamCtx, cancel := context.WithCancel(ctx)
	res, err := c.api.WatchClusters(streamCtx, c.tenant())
	if err != nil || res.StatusCode != http.StatusOK {
		defer cancel()
		if err := c.read(ctx, res, err, nil); err != nil {
			return nil, err
		}
		return nil, errors.New("its answer is no stream of changes")
	}
	return newStream(ctx, func(ctx context.Context, out *json.Encoder) error {
		defer cancel()
		defer res.Body.Close() //nolint:errcheck // read only
		defer context.AfterFunc(ctx, cancel)()
		w.out = out
		return w.relay(ctx, res.Body)
	}), nil
}

// clusterWatch makes a watch of Kubernetes of the stream of the REST API.
type clusterWatch struct {
	*call
	only   string // the name of one cluster; empty is all
	before snapshot
	synced bool
	out    *json.Encoder
}

// errEnd ends a stream.
var errEnd = errors.New("end")

// relay reads server-sent events: lines like "event: NAME" and "data: JSON", and an empty one after each.
func (w *clusterWatch) relay(ctx context.Context, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	event, data := "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if err := w.handle(ctx, event, []byte(data)); errors.Is(err, errEnd) {
				return nil
			} else if err != nil {
				return err
			}
			event, data = "", ""
		case field == "event":
			event = value
		case field == "data":
			data += value
		}
	}
	return lines.Err()
}

func (w *clusterWatch) handle(ctx context.Context, event string, data []byte) error {
	switch event {
	case "cluster":
		var e struct {
			Type    watch.EventType `json:"type"`
			Cluster object          `json:"cluster"`
		}
		if err := utiljson.Unmarshal(data, &e); err != nil {
			return err
		}
		return w.change(e.Type, w.in(e.Cluster))
	case "synced":
		w.synced = true
		for name, v := range w.before {
			if err := w.send(watch.Deleted, w.gone(name, v)); err != nil {
				return err
			}
		}
	case "problem":
		p := &client.Problem{}
		if err := json.Unmarshal(data, p); err != nil {
			return err
		}
		err := w.explain(ctx, p)
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return err
		}
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if err := w.send(watch.Error, s); err != nil {
			return err
		}
		return errEnd
	}
	return nil
}

// change tells of a cluster, unless the list had it just so.
func (w *clusterWatch) change(kind watch.EventType, o object) error {
	name, now := versionOf(o)
	if w.only != "" && name != w.only {
		delete(w.before, name)
		return nil
	}
	was, listed := w.before[name]
	if w.synced || !listed {
		return w.send(kind, o)
	}
	delete(w.before, name)
	switch {
	case now == was:
		return nil
	case now.uid == was.uid:
		return w.send(watch.Modified, o)
	}
	if err := w.send(watch.Deleted, w.gone(name, was)); err != nil {
		return err
	}
	return w.send(kind, o)
}

// gone is a cluster of which no more is known.
func (w *clusterWatch) gone(name string, v objectVersion) object {
	return w.in(object{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "WorkloadCluster", "metadata": object{
		"name": name, "uid": v.uid, "resourceVersion": v.resourceVersion,
	}})
}

func (w *clusterWatch) send(kind watch.EventType, o any) error {
	return w.out.Encode(object{"type": kind, "object": o})
}
