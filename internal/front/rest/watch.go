package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// ClusterEvent is a change of a cluster.
type ClusterEvent struct {
	Type    string        `json:"type" enum:"ADDED,MODIFIED,DELETED" doc:"What happened. At first, each cluster that is there is ADDED."`
	Cluster clusterObject `json:"cluster" doc:"The cluster after it; of one that was deleted, as it was last."`
}

const (
	// watchPart is how long the plane is asked to send changes before the rights of the caller are looked at again:
	// whoever loses them, or whose token ends, sees nothing more after that.
	watchPart = 5 * time.Minute
	// heartbeat tells both ends, and what is between them, that the connection lives.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a client may take to read one message.
	writeTimeout = 10 * time.Second
)

func registerWatch(a *API) error {
	op := operation("watch-clusters", http.MethodGet, clustersPath+":watch", tagClusters,
		"Follow all clusters of a tenant")
	op.Description = "Server-sent events. Each event cluster has a ClusterEvent; after all clusters that are there at first " +
		"comes an event synced. An event problem is the last one, with a Problem. Comments keep the connection alive."
	registry := a.huma.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"200": {
		Description: "Events, until either side ends it.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{
			Type: huma.TypeString, Description: "Server-sent events whose data are ClusterEvents.",
		}}},
	}}
	registry.Schema(typeOf[ClusterEvent](), true, "ClusterEvent")
	huma.Register(a.huma, op, func(ctx context.Context, in *TenantPath) (*huma.StreamResponse, error) {
		namespace, err := a.namespaceOf(ctx, in.Tenant)
		if err != nil {
			return nil, err
		}
		w := &clusterWatch{api: a, tenant: in.Tenant, namespace: namespace}
		// The first list before the answer begins: whoever may not watch gets a problem, not an empty stream.
		first, err := w.list(ctx)
		if err != nil {
			return nil, a.explainIn(ctx, in.Tenant, err)
		}
		// Only now, so that nobody takes places of a tenant that is not theirs.
		end, refused := a.watches.begin(in.Tenant, callerOf(ctx).token)
		if refused != nil {
			return nil, refused
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer end()
			_, rw := humago.Unwrap(c)
			w.out = &eventWriter{w: rw, control: http.NewResponseController(rw)}
			w.run(c.Context(), first)
		}}, nil
	})
	return nil
}

// clusterWatch follows the clusters of a namespace for one client.
type clusterWatch struct {
	api               *API
	tenant, namespace string
	out               *eventWriter
	known             map[string]*unstructured.Unstructured // without spec and status: for when a deletion was not seen
}

func (w *clusterWatch) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	return w.api.clusters(w.namespace).List(ctx, metav1.ListOptions{})
}

// run sends all that is there, and then what changes, until the client goes or loses its rights.
func (w *clusterWatch) run(ctx context.Context, l *unstructured.UnstructuredList) {
	w.out.begin()
	w.known = map[string]*unstructured.Unstructured{}
	if w.sendAll(l) != nil || w.out.send("synced", struct{}{}) != nil {
		return
	}
	version := l.GetResourceVersion()
	for {
		next, err := w.follow(ctx, version)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			// What happened meanwhile is not known any more, but what is there now is.
			if l, err = w.list(ctx); err == nil {
				next, err = l.GetResourceVersion(), w.sendAll(l)
			}
		}
		switch {
		case ctx.Err() != nil || errors.Is(err, errClientGone):
			return
		case err != nil:
			var p *Problem
			if errors.As(w.api.explainIn(ctx, w.tenant, err), &p) {
				_ = w.out.send("problem", p) // the client may be gone
			}
			return
		}
		version = next
	}
}

var errClientGone = errors.New("the client does not read any more")

// sendAll sends clusters that are new or changed, and those that are gone.
func (w *clusterWatch) sendAll(l *unstructured.UnstructuredList) error {
	present := map[string]bool{}
	for i := range l.Items {
		u := &l.Items[i]
		present[u.GetName()] = true
		was, known := w.known[u.GetName()]
		kind := watch.Added
		switch {
		case known && was.GetUID() != u.GetUID():
			if err := w.send(watch.Deleted, was); err != nil {
				return err
			}
		case known && was.GetResourceVersion() == u.GetResourceVersion():
			continue
		case known:
			kind = watch.Modified
		}
		if err := w.send(kind, u); err != nil {
			return err
		}
	}
	for name, was := range w.known {
		if !present[name] {
			if err := w.send(watch.Deleted, was); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends one change and remembers it.
func (w *clusterWatch) send(kind watch.EventType, u *unstructured.Unstructured) error {
	if kind == watch.Deleted {
		delete(w.known, u.GetName())
	} else {
		w.known[u.GetName()] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{
				"name": u.GetName(), "uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion(),
			},
		}}
	}
	return w.out.send("cluster", ClusterEvent{Type: string(kind), Cluster: present(u)})
}

// follow sends changes after a version for a while, and returns the version it has come to.
func (w *clusterWatch) follow(ctx context.Context, version string) (string, error) {
	events, err := w.api.clusters(w.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(watchPart / time.Second)),
	})
	if err != nil {
		return version, err
	}
	defer events.Stop()
	beat := w.api.cfg.Clock.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case <-beat.C():
			if err := w.out.comment(); err != nil {
				return version, err
			}
			beat.Reset(heartbeat)
		case e, ok := <-events.ResultChan():
			if !ok {
				return version, nil
			}
			u, isObject := e.Object.(*unstructured.Unstructured)
			switch {
			case e.Type == watch.Error:
				return version, apierrors.FromObject(e.Object)
			case !isObject:
				return version, fmt.Errorf("the plane sent a %T", e.Object)
			case e.Type != watch.Bookmark:
				if err := w.send(e.Type, u); err != nil {
					return version, err
				}
			}
			version = u.GetResourceVersion()
		}
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *eventWriter) begin() {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")           // proxies hand on each event as it comes
	_ = o.control.SetReadDeadline(time.Time{}) // that of the request ends the connection otherwise
	o.w.WriteHeader(http.StatusOK)
}

func (o *eventWriter) send(event string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var m bytes.Buffer
	fmt.Fprintf(&m, "event: %s\ndata: %s\n\n", event, b) // JSON has no line breaks
	return o.write(m.Bytes())
}

func (o *eventWriter) comment() error { return o.write([]byte(":\n\n")) }

// write gives the client some time to read.
func (o *eventWriter) write(b []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout)) //nolint:forbidigo // the kernel's clock counts
	if _, err := o.w.Write(b); err != nil {
		return errClientGone
	}
	if err := o.control.Flush(); err != nil {
		return errClientGone
	}
	// With HTTP/2 a deadline ends the stream also while nothing is written.
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
