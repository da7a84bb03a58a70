package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestNoisyTenant lets one tenant ask as much as it can, with hundreds of requests at a time, in its namespace and
// without one. Another one's lists take less than a second all the while, and the plane's controllers go on.
func TestNoisyTenant(t *testing.T) {
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	newTenant(t, p, "noisy", v1alpha1.TenantSpec{Members: members("noisy"), Quota: v1alpha1.TenantQuota{Clusters: ptr.To[int32](60)}})
	newTenant(t, p, "quiet", v1alpha1.TenantSpec{Members: members("quiet")})
	noisy, quiet := testenv.NewClient(t, as(t, p, "noisy-editor")), testenv.NewClient(t, as(t, p, "quiet-editor"))
	for i := range 60 {
		if err := noisy.Create(t.Context(), newCluster("noisy", fmt.Sprint("c", i), "", 0)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var sent, refused atomic.Int64
	ask := func(do func() error) {
		for ctx.Err() == nil {
			err := do()
			sent.Add(1)
			if apierrors.IsTooManyRequests(err) {
				refused.Add(1)
			}
		}
	}
	for range 80 {
		flood.Go(func() {
			ask(func() error { return noisy.List(ctx, &v1alpha1.WorkloadClusterList{}, client.InNamespace("noisy")) })
		})
		flood.Go(func() { ask(func() error { return noisy.List(ctx, &v1alpha1.ProviderList{}) }) })
		flood.Go(func() {
			ask(func() error { return noisy.Create(ctx, newCluster("noisy", "one-more", "", 0), client.DryRunAll) })
		})
	}
	defer flood.Wait()
	defer stop()
	testenv.Eventually(t, wait, func() error {
		if n := sent.Load(); n < 1000 {
			return fmt.Errorf("%d requests so far", n)
		}
		return nil
	})
	var took []time.Duration
	for range 100 {
		begin := time.Now()
		if err := quiet.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace("quiet")); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("beside %d requests, %d of them refused: lists took %s in the middle, %s at most", sent.Load(), refused.Load(), took[50], took[99])
	if took[98] > time.Second {
		t.Errorf("the 99th of 100 lists took %s", took[98])
	}
	begin := time.Now()
	newTenant(t, p, "during", v1alpha1.TenantSpec{Members: members("during")})
	t.Logf("a tenant was made in %s", time.Since(begin))
	o := newCluster("quiet", "beside", "", 0)
	if err := quiet.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := quiet.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Phase != v1alpha1.PhasePaused {
			return fmt.Errorf("%+v, %w", o.Status, err)
		}
		return nil
	})
}
