package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	"github.com/polder-kaas/polder/bench/scenario"
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

// measureMany makes many clusters at once on the provider in memory, whose controllers run in this process, and
// measures what that costs the plane.
func (b *bench) measureMany(ctx context.Context) (rows scenario.Rows, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended, err := b.startProvider(ctx)
	if err != nil {
		cancel()
		return rows, err
	}
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	for _, part := range []func(context.Context, *scenario.Rows) error{b.measureAtOnce, b.measureRest, b.measureGet} {
		if err := part(ctx, &rows); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// startProvider installs the instant provider and starts its controllers.
func (b *bench) startProvider(ctx context.Context) (<-chan error, error) {
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
	if err := measure.Await(ctx, b.Client, &csv1.ClusterStackReleaseList{}, v1alpha1.CatalogueNamespace,
		func(r *csv1.ClusterStackRelease) bool {
			return r.Name == "instant-bare-1-37-v1" && ptr.Deref(r.Status.Ready, false)
		}); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(b.Config, ctrl.Options{
		Scheme: b.Client.Scheme(), Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{
			SkipNameValidation: ptr.To(true),
		},
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

// measureAtOnce makes all clusters at once, and waits until they are ready.
func (b *bench) measureAtOnce(ctx context.Context, rows *scenario.Rows) error {
	rss, _, err := b.Memory()
	if err != nil {
		return err
	}
	profiled := b.startProfile(ctx)
	e, err := b.Measure(ctx, func() error {
		for i := range b.many {
			if err := b.Client.Create(ctx, crowdMember(i)); err != nil {
				return err
			}
		}
		return b.awaitCrowd(ctx)
	})
	if err != nil {
		return err
	}
	now, _, err := b.Memory()
	if err != nil {
		return err
	}
	took, calls := e.Clock, e.Requests
	own := calls.Filter(func(r measure.Request) bool { return r.Group == v1alpha1.GroupVersion.Group })
	rows.Add(fmt.Sprintf("%d WorkloadClusters at once, each with a machine", b.many), scenario.FormatSeconds(took),
		scenario.FormatPerItem(took, b.many))
	rows.Add("  requests to the plane, for each", fmt.Sprintf("%.1f", float64(calls.Total())/float64(b.many)),
		calls.Verbs())
	rows.Add("  of them for WorkloadClusters", fmt.Sprintf("%.1f", float64(own.Total())/float64(b.many)), own.Verbs())
	rows.Add("  CPU of polderd, for each", scenario.FormatPerItem(e.CPU.Sum(), b.many), "")
	rows.Add("  memory of polderd, for each", fmt.Sprintf("%.2f MiB", float64(now-rss)/float64(b.many)),
		fmt.Sprintf("%d to %d MiB", rss, now))
	return <-profiled
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
		if err := measure.Await(ctx, b.Client, &v1alpha1.WorkloadClusterList{}, customer(i),
			func(o *v1alpha1.WorkloadCluster) bool {
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

// measureRest measures what polderd does when nothing is left to do.
func (b *bench) measureRest(ctx context.Context, rows *scenario.Rows) error {
	if err := b.AwaitIdle(ctx); err != nil {
		return err
	}
	e, err := b.Measure(ctx, func() error { return scenario.Sleep(ctx, quietTime) })
	if err != nil {
		return err
	}
	writes := e.Requests.Filter(measure.Request.IsWrite)
	rows.Add("  CPU of polderd afterwards",
		fmt.Sprintf("%.1f %% of a core", 100*e.CPU.Sum().Seconds()/quietTime.Seconds()), "over "+quietTime.String())
	rows.Add("  writes in that time", strconv.Itoa(writes.Total()), scenario.JoinFew(writes.List()))
	return nil
}

// measureGet lists many by the command line. The rest of them are paused: to a list they are all the same.
func (b *bench) measureGet(ctx context.Context, rows *scenario.Rows) error {
	for i := b.many; i < b.list; i++ {
		o := crowdMember(i)
		o.Spec.Paused = ptr.To(true)
		if err := b.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	if err := b.AwaitIdle(ctx); err != nil {
		return err
	}
	times, err := scenario.Repeat(11, func() error {
		cmd := exec.CommandContext(ctx, "bin/polder", "get", "-A", "--kubeconfig", b.Kubeconfig())
		cmd.Stdout = io.Discard // a pipe, as for a script
		return cmd.Run()
	})
	if err != nil {
		return fmt.Errorf("polder get: %w", err)
	}
	rows.AddDuration(fmt.Sprintf("polder get of %d", b.list), scenario.Median(times), 300*time.Millisecond,
		scenario.FormatRange(times))
	return nil
}
