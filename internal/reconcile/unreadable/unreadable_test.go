package unreadable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Specs of a WorkloadCluster and of a Cluster.
var (
	readable   = map[string]any{"provider": "local"}
	unreadable = map[string]any{"provider": 5}
)

// eventually polls, since what an informer does has no end to wait for.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// checkProviders compares the WorkloadClusters of a cache, as name=provider.
func checkProviders(t *testing.T, c cache.Cache, want ...string) {
	t.Helper()
	eventually(t, func() error {
		var l v1alpha1.WorkloadClusterList
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it waits for the first list
		defer cancel()
		if err := c.List(ctx, &l); err != nil {
			return err
		}
		var got []string
		for i := range l.Items {
			got = append(got, l.Items[i].Name+"="+l.Items[i].Spec.Provider)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("the cache has %v, want %v", got, want)
		}
		return nil
	})
}

func countUnreadable(t *testing.T, f *Filter, want int) {
	t.Helper()
	eventually(t, func() error {
		if got := f.Unreadable(); len(got) != want {
			return fmt.Errorf("unreadable are %v, want %d", got, want)
		}
		return nil
	})
}

// forBothLists runs a test with a server that streams lists, and with one that does not.
func forBothLists(t *testing.T, test func(*testing.T, *server)) {
	for _, watchList := range []bool{false, true} {
		t.Run(fmt.Sprintf("watch list %t", watchList), func(t *testing.T) { test(t, newServer(t, watchList)) })
	}
}

func TestUnreadableAtTheStart(t *testing.T) {
	forBothLists(t, func(t *testing.T, s *server) {
		s.put("WorkloadCluster", "good", readable)
		s.put("WorkloadCluster", "bad", unreadable)
		f, c := startCache(t, s, true)
		checkProviders(t, c, "good=local")
		countUnreadable(t, f, 1)
		s.put("WorkloadCluster", "later", readable)
		s.put("WorkloadCluster", "worse", unreadable)
		checkProviders(t, c, "good=local", "later=local")
		countUnreadable(t, f, 2)
		s.put("WorkloadCluster", "bad", map[string]any{"provider": "repaired"})
		s.put("WorkloadCluster", "worse", nil)
		checkProviders(t, c, "bad=repaired", "good=local", "later=local")
		countUnreadable(t, f, 0)
		if f.kinds[0].isSuspect() {
			t.Error("all can be read, and each is still looked at")
		}
	})
}

// seenEvents are those that controllers get.
type seenEvents struct {
	mu  sync.Mutex
	all []string
}

func (s *seenEvents) add(what string, o any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := o.(*v1alpha1.WorkloadCluster); ok {
		s.all = append(s.all, fmt.Sprintf("%s %s=%s", what, c.Name, c.Spec.Provider))
	}
}

func (s *seenEvents) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.all, what)
}

func watchEvents(t *testing.T, c cache.Cache) *seenEvents {
	t.Helper()
	i, err := c.GetInformer(t.Context(), &v1alpha1.WorkloadCluster{})
	if err != nil {
		t.Fatal(err)
	}
	seen := &seenEvents{}
	if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) { seen.add("update", o) },
		DeleteFunc: func(o any) { seen.add("delete", o) },
	}); err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestLastReadableVersionStays(t *testing.T) {
	forBothLists(t, func(t *testing.T, s *server) {
		s.put("WorkloadCluster", "one", map[string]any{"provider": "first"})
		f, c := startCache(t, s, true)
		checkProviders(t, c, "one=first")
		seen := watchEvents(t, c)
		var before v1alpha1.WorkloadCluster
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, &before); err != nil {
			t.Fatal(err)
		}
		s.put("WorkloadCluster", "one", unreadable)
		countUnreadable(t, f, 1)
		s.put("WorkloadCluster", "one", map[string]any{"provider": "local", "stack": "text"})
		s.put("WorkloadCluster", "two", readable)
		checkProviders(t, c, "one=first", "two=local")
		var after v1alpha1.WorkloadCluster
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, &after); err != nil || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("version %s, %v; want that which could be read, %s", after.ResourceVersion, err, before.ResourceVersion)
		}
		// Only a deletion by the server is one; handlers get what they knew.
		if seen.has("delete one=first") {
			t.Error("unreadable was taken for deleted")
		}
		s.put("WorkloadCluster", "one", nil)
		checkProviders(t, c, "two=local")
		eventually(t, func() error {
			if !seen.has("delete one=first") {
				return errors.New("the deletion was not seen")
			}
			return nil
		})
		countUnreadable(t, f, 0)
	})
}

func TestCountedKindsStayPaused(t *testing.T) {
	forBothLists(t, func(t *testing.T, s *server) {
		s.put("Cluster", "good", map[string]any{})
		s.put("Cluster", "bad", map[string]any{"clusterNetwork": "text", "controlPlaneEndpoint": map[string]any{"host": 1, "port": 2}})
		f, c := startCache(t, s, true)
		var bad clusterv1.Cluster
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			bad = clusterv1.Cluster{}
			return c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "bad"}, &bad)
		}
		eventually(t, get)
		if !ptr.Deref(bad.Spec.Paused, false) || bad.Annotations[clusterv1.PausedAnnotation] == "" || bad.Spec.ControlPlaneEndpoint.Port != 2 ||
			bad.Spec.ControlPlaneEndpoint.Host != "" || bad.ResourceVersion != v1alpha1.UnreadableVersion || !isPartial(&bad) {
			t.Errorf("%+v", bad)
		}
		s.put("Cluster", "bad", map[string]any{"clusterNetwork": map[string]any{}, "controlPlaneEndpoint": map[string]any{"host": "a", "port": "2"}})
		eventually(t, func() error {
			if err := get(); err != nil || bad.Spec.ControlPlaneEndpoint.Host != "a" || !isPartial(&bad) {
				return fmt.Errorf("a part that is newer did not come: %+v, %w", bad.Spec, err)
			}
			return nil
		})
		s.put("Cluster", "bad", map[string]any{"controlPlaneEndpoint": map[string]any{"host": "a", "port": 2}})
		eventually(t, func() error {
			if err := get(); err != nil || isPartial(&bad) || ptr.Deref(bad.Spec.Paused, false) {
				return fmt.Errorf("not repaired: %+v, %w", bad, err)
			}
			return nil
		})
		countUnreadable(t, f, 0)
	})
}

// What the filter is for: without it the kind never syncs.
func TestWithoutFilter(t *testing.T) {
	s := newServer(t, true)
	s.put("WorkloadCluster", "good", readable)
	s.put("WorkloadCluster", "bad", unreadable)
	_, c := startCache(t, s, false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.List(ctx, &v1alpha1.WorkloadClusterList{}); err == nil {
		t.Error("an informer can read it now; the filter is not needed any more")
	}
}

func TestReportedOncePerVersion(t *testing.T) {
	s := newServer(t, true)
	s.put("WorkloadCluster", "bad", unreadable)
	f, c := startCache(t, s, true)
	checkProviders(t, c)
	s.put("WorkloadCluster", "bad", map[string]any{"provider": "local", "stack": "text"})
	eventually(t, func() error {
		if all := f.Unreadable(); len(all) != 1 || !strings.Contains(all[0].Problem, "spec.stack") {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
	var notes []string
	for _, o := range f.takePending() {
		e := newEvent(o, metav1.MicroTime{})
		notes = append(notes, e.Note)
		if again := newEvent(o, metav1.NowMicro()); again.Name != e.Name || e.Reason != Reason || e.Namespace != "a" || e.Regarding.Name != "bad" {
			t.Errorf("%+v", e)
		}
	}
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "spec.provider holds a number where text belongs; ") ||
		!strings.HasPrefix(notes[1], "spec.stack holds text where an object belongs; ") {
		t.Errorf("%q", notes)
	}
}

func TestTransportLeavesOthersAlone(t *testing.T) {
	body := io.NopCloser(strings.NewReader("{"))
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/apis/b/v1/c", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := WrapTransport(next).RoundTrip(r); err != nil || res.Body != body {
		t.Errorf("%v, %v", res, err)
	}
}

func TestIsDecodeError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":              {nil, false},
		"of decoding":       {errors.New("json: cannot unmarshal"), true},
		"of the API server": {apierrors.NewNotFound(schema.GroupResource{}, "a"), false},
		"of a context":      {fmt.Errorf("a: %w", context.DeadlineExceeded), false},
		"of a short answer": {fmt.Errorf("a: %w", io.ErrUnexpectedEOF), false},
	} {
		if got := isDecodeError(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
