package unreadable

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// server answers lists and watches of one kind from objects that nothing has validated.
type server struct {
	*httptest.Server
	watchList bool // a watch can begin with what there is

	mu       sync.Mutex
	revision int
	header   map[string]any // the kind
	objects  map[string]map[string]any
	history  []event
	changed  chan struct{} // closes with the next change
}

var apiVersions = map[string]string{"Cluster": clusterv1.GroupVersion.String(), "WorkloadCluster": v1alpha1.GroupVersion.String()}

type event struct {
	revision int
	frame    frame
}

func newServer(t *testing.T, watchList bool) *server {
	t.Helper()
	s := &server{watchList: watchList, revision: 10, objects: map[string]map[string]any{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// put stores an object; nil deletes it.
func (s *server) put(kind, name string, spec any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	o := map[string]any{
		"apiVersion": apiVersions[kind], "kind": kind, "spec": spec,
		"metadata": map[string]any{"namespace": "a", "name": name, "uid": "uid-" + name, "resourceVersion": strconv.Itoa(s.revision)},
	}
	s.header = map[string]any{"apiVersion": o["apiVersion"], "kind": kind}
	was, there := s.objects[name]
	change := watch.Added
	s.objects[name] = o
	switch {
	case spec == nil:
		change = watch.Deleted
		o["spec"] = was["spec"]
		delete(s.objects, name)
	case there:
		change = watch.Modified
	}
	s.history = append(s.history, event{s.revision, frame{change, encode(o)}})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	switch {
	case q.Get("watch") != "true":
		s.list(w)
	case initial && !s.watchList:
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	default:
		from, _ := strconv.Atoi(q.Get("resourceVersion"))
		if initial {
			from = s.sendInitial(w)
		}
		s.stream(r.Context(), w, from)
	}
}

func (s *server) list(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := slices.Collect(maps.Values(s.objects))
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": fmt.Sprint(s.header["kind"], "List"), "apiVersion": s.header["apiVersion"], "items": append([]map[string]any{}, items...),
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.revision)}})
}

func (s *server) sendInitial(w http.ResponseWriter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		_ = json.NewEncoder(w).Encode(frame{watch.Added, encode(o)})
	}
	end := maps.Clone(s.header)
	end["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(s.revision), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	_ = json.NewEncoder(w).Encode(frame{watch.Bookmark, encode(end)})
	return s.revision
}

func (s *server) stream(ctx context.Context, w http.ResponseWriter, from int) {
	for {
		s.mu.Lock()
		for _, e := range s.history {
			if e.revision > from {
				_ = json.NewEncoder(w).Encode(e.frame)
				from = e.revision
			}
		}
		changed := s.changed
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// startCache starts the cache of a manager that reads from the server.
func startCache(t *testing.T, s *server, filtered bool) (*Filter, cache.Cache) {
	t.Helper()
	scheme := newScheme(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range scheme.AllKnownTypes() {
		if !strings.HasSuffix(gvk.Kind, "List") {
			mapper.Add(gvk, meta.RESTScopeNamespace)
		}
	}
	f, cfg := New(scheme), &rest.Config{Host: s.URL}
	o := cache.Options{Scheme: scheme, Mapper: mapper}
	if filtered {
		cfg.Wrap(WrapTransport)
		o = f.FilterInformers(o)
	}
	c, err := cache.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f, c
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
