package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/providers/heartbeat"
)

const (
	perCustomer = 20 // clusters in one namespace
	quietTime   = time.Minute
)

// customer is the namespace of a cluster.
func customer(i int) string { return fmt.Sprintf("customer-%d", i/perCustomer) }

// crowd makes many clusters at once on the provider in memory, whose controllers run in this process, and measures what
// that costs the plane.
func (b *bench) crowd(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended, err := b.provider(ctx)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	if err := b.atOnce(ctx); err != nil {
		return err
	}
	return b.get(ctx)
}

// provider installs the instant provider and starts its controllers.
func (b *bench) provider(ctx context.Context) (<-chan error, error) {
	stacks, err := b.instant.ClusterStacks(v1alpha1.CatalogueNamespace, "instant")
	if err != nil {
		return nil, err
	}
	for _, crd := range b.instant.CRDs() {
		if err := b.Client.Create(ctx, crd); err != nil {
			return nil, err
		}
	}
	objects := append(b.instant.Roles(), stacks...)
	for i := 0; i < b.list; i += perCustomer {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: customer(i)}})
	}
	for _, o := range objects {
		if err := b.Client.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	if err := measure.Await(ctx, b.Client, &csv1.ClusterStackReleaseList{}, v1alpha1.CatalogueNamespace, func(r *csv1.ClusterStackRelease) bool {
		return r.Name == "instant-bare-1-37-v1" && ptr.Deref(r.Status.Ready, false)
	}); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(b.Config, ctrl.Options{
		Scheme: b.Client.Scheme(), Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err == nil {
		err = b.instant.SetupWithManager(mgr)
	}
	var guarded *guard.Guard
	if err == nil {
		guarded, err = guard.New(ctx, b.instant, time.Minute)
	}
	if err == nil {
		err = operator.SetupProvider(mgr, b.Client, heartbeat.Publisher{Provider: guarded}, 10)
	}
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, measure.Await(ctx, b.Client, &v1alpha1.ProviderList{}, "", func(p *v1alpha1.Provider) bool {
		return p.Name == "instant" && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
	})
}

// atOnce makes all clusters at once, and waits until they are ready.
func (b *bench) atOnce(ctx context.Context) error {
	before, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	rss, _, err := b.Memory()
	if err != nil {
		return err
	}
	profiled := b.startProfile(ctx)
	begin := time.Now()
	for i := range b.many {
		if err := b.Client.Create(ctx, crowdMember(i)); err != nil {
			return err
		}
	}
	if err := b.awaitCrowd(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	now, _, err := b.Memory()
	if err != nil {
		return err
	}
	calls := after.Requests.Minus(before.Requests)
	own := calls.Filter(func(r measure.Request) bool { return r.Group == v1alpha1.GroupVersion.Group })
	b.Add(fmt.Sprintf("%d WorkloadClusters at once, each with a machine", b.many), measure.FormatSeconds(took), measure.FormatPerItem(took, b.many))
	b.Add("  requests to the plane, for each", fmt.Sprintf("%.1f", float64(calls.Total())/float64(b.many)), calls.Verbs())
	b.Add("  of them for WorkloadClusters", fmt.Sprintf("%.1f", float64(own.Total())/float64(b.many)), own.Verbs())
	b.Add("  CPU of polderd, for each", measure.FormatPerItem(after.CPU.Minus(before.CPU).Sum(), b.many), "")
	b.Add("  memory of polderd, for each", fmt.Sprintf("%.2f MiB", float64(now-rss)/float64(b.many)), fmt.Sprintf("%d to %d MiB", rss, now))
	if err := <-profiled; err != nil {
		return err
	}
	return b.quiet(ctx)
}

// startProfile takes a CPU profile of the first 20 s, if one is wanted.
func (b *bench) startProfile(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if b.profile == "" {
		close(done)
		return done
	}
	go func() {
		page, err := b.GetPath(ctx, "/debug/pprof/profile?seconds=20")
		if err == nil {
			err = os.WriteFile(b.profile, page, 0o600)
		}
		done <- err
	}()
	return done
}

func crowdMember(i int) *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: customer(i), Name: "c" + strconv.Itoa(i)}}
	o.Spec.Provider, o.Spec.Stack = "instant", v1alpha1.StackReference{Name: "bare", KubernetesVersion: "1.37"}
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "pool", Replicas: ptr.To[int32](1)}}
	return o
}

// awaitCrowd waits until all are ready, one customer's after the other's.
func (b *bench) awaitCrowd(ctx context.Context) error {
	for i := 0; i < b.many; i += perCustomer {
		ready, all := map[string]bool{}, min(perCustomer, b.many-i)
		if err := measure.Await(ctx, b.Client, &v1alpha1.WorkloadClusterList{}, customer(i), func(o *v1alpha1.WorkloadCluster) bool {
			if meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady) {
				ready[o.Name] = true
			}
			return len(ready) == all
		}); err != nil {
			return err
		}
	}
	return nil
}

// quiet measures what polderd does when nothing is left to do.
func (b *bench) quiet(ctx context.Context) error {
	if _, err := b.MeasureUntilIdle(ctx, time.Now(), measure.Effort{}); err != nil { // until it is idle
		return err
	}
	before, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := measure.Sleep(ctx, quietTime); err != nil {
		return err
	}
	after, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	writes := after.Requests.Minus(before.Requests).Filter(measure.Request.IsWrite)
	b.Add("  CPU of polderd afterwards", fmt.Sprintf("%.1f %% of a core", 100*after.CPU.Minus(before.CPU).Sum().Seconds()/quietTime.Seconds()), "over "+quietTime.String())
	b.Add("  writes in that time", strconv.Itoa(writes.Total()), measure.JoinFew(writes.List()))
	return nil
}

// get lists many by the command line. The rest of them are paused: to a list they are all the same.
func (b *bench) get(ctx context.Context) error {
	for i := b.many; i < b.list; i++ {
		o := crowdMember(i)
		o.Spec.Paused = ptr.To(true)
		if err := b.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	if _, err := b.MeasureUntilIdle(ctx, time.Now(), measure.Effort{}); err != nil { // until it is idle
		return err
	}
	bin, err := filepath.Abs("bin/polder")
	if err != nil {
		return err
	}
	var times []time.Duration
	for range 11 {
		cmd := exec.CommandContext(ctx, bin, "get", "-A", "--kubeconfig", filepath.Join(b.Data(), "admin.kubeconfig"))
		cmd.Stdout = io.Discard
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("polder get: %w", err)
		}
		times = append(times, time.Since(begin))
	}
	b.AddDuration(fmt.Sprintf("polder get of %d", b.list), measure.Median(times), 300*time.Millisecond, measure.FormatRange(times))
	return nil
}
