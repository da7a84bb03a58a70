package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/stack/archive"
)

const (
	addonsAim = 3 * time.Second
	addonsNS  = "addons"
)

// large is a workload cluster that changes its class.
type large struct {
	*bench
	cluster  *clusterv1.Cluster
	workload client.Client
	was      map[string]string // the add-ons' objects, with their versions
}

// measureAddons brings many objects into a workload cluster: by a class change from the shipped release to one
// that has them, to one in which some differ, and to one in which none does.
func (b *bench) measureAddons(ctx context.Context) (rows scenario.Rows, err error) {
	differing := b.objects / 10
	contents := []archive.Tree{
		b.published.shipped, b.published.withMany(b.objects, 0), b.published.withMany(b.objects, differing),
		b.published.withMany(b.objects, differing),
	}
	var classes []string
	var kube string
	for i, files := range contents {
		class, k, err := b.published.publish(ctx, addonsNS, i+1, files)
		if err != nil {
			return rows, err
		}
		classes, kube = append(classes, class), k
	}
	if err := b.namespace(ctx, addonsNS); err != nil {
		return rows, err
	}
	if err := b.Client.Create(ctx, b.published.stack(addonsNS, 1, len(contents))); err != nil {
		return rows, err
	}
	if err := b.stackReady(ctx, addonsNS, len(contents)); err != nil {
		return rows, err
	}
	l := &large{bench: b}
	if err := l.create(ctx, classes[0], kube); err != nil {
		return rows, err
	}
	for i, what := range []string{
		fmt.Sprintf("class change that brings %d objects into a cluster", b.objects),
		fmt.Sprintf("class change with %d of %d objects different", differing, b.objects),
		fmt.Sprintf("class change with none of %d objects different", b.objects),
	} {
		if err := l.measureChange(ctx, &rows, what, classes[i+1]); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// create makes a cluster of one control plane, and waits for its add-ons.
func (l *large) create(ctx context.Context, class, kube string) error {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: addonsNS, Name: "large"}}
	c.Spec.Topology.ClassRef.Name = class
	c.Spec.Topology.Version = kube
	c.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1)
	scenario.Logf("making a workload cluster")
	if err := l.Client.Create(ctx, c); err != nil {
		return err
	}
	l.cluster = c
	if _, err := l.applied(ctx, class); err != nil {
		return err
	}
	err := measure.Await(ctx, l.Client, &clusterv1.ClusterList{}, addonsNS, func(c *clusterv1.Cluster) bool {
		return slices.ContainsFunc(c.Status.Conditions, func(x metav1.Condition) bool {
			return x.Type == clusterv1.AvailableCondition && x.Status == metav1.ConditionTrue
		})
	})
	if err != nil {
		return err
	}
	var s corev1.Secret
	if err := l.Client.Get(ctx, client.ObjectKey{Namespace: addonsNS, Name: c.Name + "-kubeconfig"}, &s); err != nil {
		return err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	if err != nil {
		return err
	}
	l.workload, err = measure.NewClient(cfg)
	return err
}

// way is how the add-ons of a class became ready.
type way struct {
	begun   time.Time // first seen
	early   []string  // what was said to be ready before it was
	objects []csv1.Resource
}

// applied waits until the add-ons are those of a class.
func (l *large) applied(ctx context.Context, class string) (w way, err error) {
	release := addonsNS + "/" + class
	err = measure.Await(ctx, l.Client, &csv1.ClusterAddonList{}, addonsNS, func(a *csv1.ClusterAddon) bool {
		if a.Status.Target != release {
			return false
		}
		if w.begun.IsZero() {
			w.begun = time.Now()
		}
		w.objects = a.Status.Resources
		if isReady(a.Status.Conditions) && a.Status.Release != release {
			w.early = append(w.early, "version "+a.ResourceVersion)
		}
		return isReady(a.Status.Conditions) && a.Status.Release == release
	})
	return w, err
}

// measureChange gives the cluster another class.
func (l *large) measureChange(ctx context.Context, rows *scenario.Rows, what, class string) error {
	if err := l.AwaitIdle(ctx); err != nil { // of the cluster before
		return err
	}
	before, err := l.CPU()
	if err != nil {
		return err
	}
	begin := time.Now()
	patch := fmt.Sprintf(`{"spec":{"topology":{"classRef":{"name":%q}}}}`, class)
	if err := l.Client.Patch(ctx, l.cluster, client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
		return err
	}
	way, err := l.applied(ctx, class)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := l.CPU()
	if err != nil {
		return err
	}
	is, err := versions(ctx, l.workload, way.objects)
	if err != nil {
		return err
	}
	if n := len(is); n < l.objects || slices.Contains(slices.Collect(maps.Values(is)), missing) {
		return fmt.Errorf("the add-ons are said to be ready with %d objects, and not all of them are there", n)
	}
	rows.AddDuration(what, took, addonsAim,
		fmt.Sprintf("its stages are seen to have begun after %s", scenario.FormatSeconds(way.begun.Sub(begin))))
	used := after.Minus(before)
	rows.Add("  CPU of polderd", scenario.FormatSeconds(used.Sum()), measure.FormatChildren(used))
	rows.AddExpectNone("  said to be ready before they were", len(way.early), way.early)
	l.addWritten(rows, is)
	return nil
}

// addWritten adds which objects were written. One of the shipped stack always is: it says of which release
// the add-ons are.
func (l *large) addWritten(rows *scenario.Rows, is map[string]string) {
	changed := differing(l.was, is)
	others := slices.DeleteFunc(slices.Clone(changed), func(n string) bool { return strings.Contains(n, "/many-") })
	rows.Add("  objects of it written in the cluster", strconv.Itoa(len(changed)-len(others)), "")
	if l.was != nil { // else those of before are not known
		rows.Add("  objects of other add-ons written", strconv.Itoa(len(others)), scenario.JoinFew(others))
	}
	l.was = is
}
