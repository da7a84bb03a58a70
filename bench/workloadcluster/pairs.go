package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

// What both clusters of a pair are made of.
const (
	line    = "local-scs-1-37-" // of the stack in the binary, whose version is raised with its content
	workers = 2
	pairsNS = "pairs"
)

// awaitCatalogue waits for the stack in the binary, and takes its release.
func (b *bench) awaitCatalogue(ctx context.Context) error {
	return measure.Await(ctx, b.Client, &csv1.ClusterStackReleaseList{}, v1alpha1.CatalogueNamespace,
		func(r *csv1.ClusterStackRelease) bool {
			b.class, b.version = r.Name, r.Status.KubernetesVersion
			return strings.HasPrefix(r.Name, line) && ptr.Deref(r.Status.Ready, false)
		})
}

// measurePairs makes the same cluster in both ways, in turns, and compares.
func (b *bench) measurePairs(ctx context.Context) (rows scenario.Rows, err error) {
	if err := b.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pairsNS}}); err != nil {
		return rows, err
	}
	var bare, ours, added []time.Duration
	for i := range b.rounds + 1 { // the first of each warms up
		for _, way := range []struct {
			name string
			make func(string) client.Object
			to   *[]time.Duration
		}{{"bare", b.bareCluster, &bare}, {"ours", workloadCluster, &ours}} {
			t, err := b.timeCluster(ctx, way.make(fmt.Sprintf("%s-%d", way.name, i)))
			if err != nil {
				return rows, err
			}
			scenario.Logf("%s: %s, of which %s are not Cluster API's", way.name, scenario.FormatSeconds(t.all),
				scenario.FormatSeconds(t.added()))
			if i > 0 {
				*way.to = append(*way.to, t.all)
			}
			if i > 0 && way.to == &ours {
				added = append(added, t.added())
			}
		}
	}
	rows.Add("a bare Cluster, ready with its add-ons", scenario.FormatSeconds(scenario.Median(bare)),
		scenario.FormatRange(bare))
	ratio := scenario.Median(ours).Seconds() / scenario.Median(bare).Seconds()
	rows.AddRow(scenario.Row{
		What: "the same as a WorkloadCluster", Measured: []string{scenario.FormatSeconds(scenario.Median(ours))},
		Aim: "ratio 1.05", Ratio: fmt.Sprintf("%.2f", ratio), More: scenario.FormatRange(ours),
	})
	rows.Add("  before it has a Cluster, and after that is ready", scenario.FormatSeconds(scenario.Median(added)),
		scenario.FormatRange(added))
	return rows, nil
}

// times are those of one cluster, since it was created.
type times struct{ there, ready, all time.Duration }

// added is what a WorkloadCluster takes longer than its own Cluster.
func (t times) added() time.Duration { return t.there + t.all - t.ready }

// timeCluster makes a cluster, waits until it is ready, and deletes it.
func (b *bench) timeCluster(ctx context.Context, o client.Object) (times, error) {
	begin := time.Now()
	if err := b.Client.Create(ctx, o); err != nil {
		return times{}, err
	}
	t, err := b.awaitAllReady(ctx, o, begin)
	if err != nil {
		return t, err
	}
	if err := b.Client.Delete(ctx, o); err != nil {
		return t, err
	}
	return t, b.AwaitGone(ctx, o, 100*time.Millisecond)
}

// awaitAllReady waits for the same in both: machines and add-ons; a WorkloadCluster must also say that it is ready
// itself.
func (b *bench) awaitAllReady(ctx context.Context, o client.Object, begin time.Time) (t times, err error) {
	if err := measure.Await(ctx, b.Client, &clusterv1.ClusterList{}, pairsNS,
		func(c *clusterv1.Cluster) bool { return c.Name == o.GetName() }); err != nil {
		return t, err
	}
	t.there = time.Since(begin)
	if err := b.awaitClusterReady(ctx, o.GetName()); err != nil {
		return t, err
	}
	t.ready = time.Since(begin)
	if _, ok := o.(*v1alpha1.WorkloadCluster); ok {
		err = measure.Await(ctx, b.Client, &v1alpha1.WorkloadClusterList{}, pairsNS, func(w *v1alpha1.WorkloadCluster) bool {
			return w.Name == o.GetName() && meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady)
		})
	}
	t.all = time.Since(begin)
	return t, err
}

func (b *bench) awaitClusterReady(ctx context.Context, name string) error {
	if err := measure.Await(ctx, b.Client, &clusterv1.ClusterList{}, pairsNS, func(c *clusterv1.Cluster) bool {
		w := c.Status.Workers
		return c.Name == name && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.AvailableCondition) && w != nil &&
			ptr.Deref(w.AvailableReplicas, 0) == workers
	}); err != nil {
		return err
	}
	return measure.Await(ctx, b.Client, &csv1.ClusterAddonList{}, pairsNS, func(a *csv1.ClusterAddon) bool {
		return a.Name == csv1.AddonPrefix+name && ptr.Deref(a.Status.Ready, false)
	})
}

func (b *bench) bareCluster(name string) client.Object {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: pairsNS, Name: name}}
	c.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}},
		Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/16"}}, ServiceDomain: "cluster.local",
	}
	t := &c.Spec.Topology
	t.ClassRef = clusterv1.ClusterClassRef{Namespace: v1alpha1.CatalogueNamespace, Name: b.class}
	t.Version, t.ControlPlane.Replicas = b.version, ptr.To[int32](1)
	t.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{
		{Class: "default-worker", Name: "default", Replicas: ptr.To[int32](workers)},
	}
	return c
}

func workloadCluster(name string) client.Object {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: pairsNS, Name: name}}
	o.Spec.Provider, o.Spec.Stack = "local", v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37"}
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "default", Replicas: ptr.To[int32](workers)}}
	return o
}
