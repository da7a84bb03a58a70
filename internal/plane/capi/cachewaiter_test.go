package capi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchDelay is how late the server of these tests sends the events of a watch.
const watchDelay = 200 * time.Millisecond

// newDelayedServer starts a server that has one ConfigMap once it was written, and sends its watch event late. It
// sends no events of Secrets at all.
func newDelayedServer(t *testing.T) *rest.Config {
	t.Helper()
	written := make(chan struct{}, 2)
	answer := func(w http.ResponseWriter, o any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}
	made := func(kind, version string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", ResourceVersion: version},
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces/n/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dryRun") {
			answer(w, made("ConfigMap", "100"))
			return
		}
		answer(w, made("ConfigMap", "10"))
		written <- struct{}{}
	})
	mux.HandleFunc("POST /api/v1/namespaces/n/secrets", func(w http.ResponseWriter, _ *http.Request) { answer(w, made("Secret", "11")) })
	mux.HandleFunc("GET /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("sendInitialEvents") {
			http.Error(w, "a list is wanted", http.StatusUnprocessableEntity)
			return
		}
		if !r.URL.Query().Has("watch") {
			answer(w, corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-written:
			time.Sleep(watchDelay) // the lateness that is tested
			answer(w, map[string]any{"type": "ADDED", "object": made("ConfigMap", "10")})
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &rest.Config{Host: s.URL}
}

// startCacheWaiter returns a client whose writes wait for the cache, and that cache.
func startCacheWaiter(t *testing.T) (client.Client, client.Reader) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	cfg, e := newDelayedServer(t), newCacheWaiter(scheme)
	cfg.Wrap(e.wrapTransport)
	cache, err := ctrlcache.New(cfg, e.trackInformers(ctrlcache.Options{Scheme: scheme, Mapper: mapper}))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cache.Start(t.Context()) }() // it ends with the test
	if _, err := cache.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c, cache
}

// Whoever has written something finds it in the cache, however late the watch is.
func TestCacheWaiter(t *testing.T) {
	t.Parallel()
	c, cache := startCacheWaiter(t)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

// Writes of kinds that no cache holds, and dry runs, wait for nothing.
func TestCacheWaiterSkipsUncached(t *testing.T) {
	t.Parallel()
	c, _ := startCacheWaiter(t)
	begin := time.Now()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	if err := c.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took >= cacheWaitTimeout {
		t.Errorf("it took %s", took)
	}
	if o.ResourceVersion != "100" {
		t.Errorf("the answer has become %+v", o)
	}
}

// fakeInformer is an informer that gets no events.
type fakeInformer struct {
	stopped bool
	toolscache.Store
}

func (d *fakeInformer) GetStore() toolscache.Store { return d.Store }
func (d *fakeInformer) IsStopped() bool            { return d.stopped }

// A cache that has stopped gets no events any more, and nobody waits for it.
func TestStoppedCache(t *testing.T) {
	e, gvk := newCacheWaiter(runtime.NewScheme()), corev1.SchemeGroupVersion.WithKind("ConfigMap")
	d := &fakeInformer{Store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)}
	e.addInformer(gvk, d)
	for _, c := range []struct {
		has     string
		stopped bool
		want    bool
	}{{"", false, false}, {"9", false, false}, {"10", false, true}, {"11", false, true}, {"9", true, true}} {
		d.Bookmark(c.has)
		d.stopped = c.stopped
		if got := e.hasReachedVersion(gvk, "10"); got != c.want {
			t.Errorf("a cache at %q, stopped %v: %v", c.has, c.stopped, got)
		}
	}
}
