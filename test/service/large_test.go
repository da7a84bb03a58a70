package service

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/watchlimit"
	"github.com/polder-kaas/polder/test/testenv"
)

var large = flag.Int("large", 200, "how many clusters the tenant of TestLargeTenant has")

// TestLargeTenant gives one tenant as many objects as its quota allows, large ones, which it lists as a whole and tries
// to watch a thousand times. Another's lists take less than a second all the while, and what is deleted leaves nothing.
func TestLargeTenant(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	newTenant(t, p, "large", v1alpha1.TenantSpec{Members: members("large"), Quota: v1alpha1.TenantQuota{
		Clusters: ptr.To(int32(*large)), Machines: ptr.To(int32(*large)),
	}})
	newTenant(t, p, "small", v1alpha1.TenantSpec{Members: members("small")})
	of, small := testenv.NewClient(t, as(t, p, "large-editor")), testenv.NewClient(t, as(t, p, "small-editor"))
	if err := small.Create(t.Context(), newCluster("small", "one", "", 0)); err != nil {
		t.Fatal(err)
	}
	before, series := measureLists(t, small, "small"), countSeries(t, p)

	began := time.Now()
	createMany(t, of, "large", *large)
	t.Logf("%d clusters were made in %s", *large, time.Since(began).Round(time.Second))
	one := newCluster("large", "one-too-many", "", 0)
	testenv.Eventually(t, wait, func() error {
		err := of.Create(t.Context(), one.DeepCopy())
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(strings.ToLower(err.Error()), "quota") {
			return fmt.Errorf("one more than the quota: %w", err)
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	var lists, watches atomic.Int64
	path := "/apis/polder.dev/v1alpha1/namespaces/large/workloadclusters"
	for range 8 { // giant lists, as fast as they are answered
		load.Go(func() {
			for ctx.Err() == nil {
				if code, n := discard(ctx, t, as(t, p, "large-editor"), path); code == http.StatusOK && n > 0 {
					lists.Add(1)
				}
			}
		})
	}
	var refused atomic.Int64
	for range 1000 {
		load.Go(func() {
			watches.Add(1)
			code, _ := discard(ctx, t, as(t, p, "large-viewer"), path+"?watch=true")
			watches.Add(-1)
			if code == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
	}
	testenv.Eventually(t, wait, func() error {
		if lists.Load() == 0 || refused.Load() < 1000-watchlimit.Most {
			return fmt.Errorf("%d lists, %d watches, %d refused", lists.Load(), watches.Load(), refused.Load())
		}
		return nil
	})
	beside := measureLists(t, small, "small")
	t.Logf("lists of another tenant: %s in the middle and %s at most before, %s and %s beside %d whole lists and %d watches; polderd has %s",
		before[50], before[99], beside[50], beside[99], lists.Load(), watches.Load(), p.Memory(t))
	if beside[98] > time.Second {
		t.Errorf("the 99th of 100 lists of another tenant took %s", beside[98])
	}
	beginning := time.Now()
	o := newCluster("small", "beside", "", 0)
	if err := small.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := small.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Phase != v1alpha1.PhasePaused {
			return fmt.Errorf("%+v, %w", o.Status, err)
		}
		return nil
	})
	t.Logf("another's cluster was looked at after %s", time.Since(beginning).Round(time.Millisecond))
	// Verbs, codes and flows that were not seen before; none for each object.
	if now := countSeries(t, p); now > series+600 {
		t.Errorf("the plane has %d series of metrics, before the objects it had %d", now, series)
	}
	stop()
	load.Wait()
	if err := of.DeleteAllOf(t.Context(), &v1alpha1.WorkloadCluster{}, client.InNamespace("large")); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, 10*time.Minute, func() error {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkloadClusterList"))
		if err := c.List(t.Context(), l, client.InNamespace("large"), client.Limit(1)); err != nil || len(l.Items) > 0 {
			return fmt.Errorf("there are clusters left: %w", err)
		}
		return nil
	})
}

// discard asks for something, and reads the answer without looking at it: what a client does with it is not the plane's
// work. It returns the code and how long the answer was.
func discard(ctx context.Context, t *testing.T, cfg *rest.Config, path string) (code int, n int64) {
	cfg.DisableCompression = true // by the client, which would unpack it
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := c.Do(r)
	if err != nil {
		return 0, 0 // it has ended
	}
	defer res.Body.Close()
	n, _ = io.Copy(io.Discard, res.Body) // as above
	return res.StatusCode, n
}

// createMany makes clusters that are paused, with as much beside them as an object may have.
func createMany(t *testing.T, c client.Client, namespace string, n int) {
	t.Helper()
	note := strings.Repeat("x", 8<<10)
	var all sync.WaitGroup
	next, failed := atomic.Int64{}, atomic.Int64{}
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				o := newCluster(namespace, fmt.Sprint("c", i), "", 0)
				o.Annotations = map[string]string{"example.org/note": note}
				for {
					err := c.Create(t.Context(), o)
					if apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) {
						continue // it waits for itself
					}
					if err != nil && failed.Add(1) == 1 {
						t.Errorf("cluster %d: %v", i, err)
					}
					break
				}
				if failed.Load() > 0 {
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// measureLists returns how long 100 lists of a namespace took, in order.
func measureLists(t *testing.T, c client.Client, namespace string) (took []time.Duration) {
	t.Helper()
	for range 100 {
		began := time.Now()
		if err := c.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began).Round(10*time.Microsecond))
	}
	slices.Sort(took)
	return took
}

// countSeries counts the series of metrics of the plane.
func countSeries(t *testing.T, p *testenv.Plane) (n int) {
	t.Helper()
	for line := range strings.Lines(p.GetPath(t, "/metrics")) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
