package operator

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
)

// objectsReady counts objects. Its labels have few values, however many objects there are: kinds, and the states and
// reasons of their Ready condition.
var objectsReady = prometheus.NewDesc("polder_stack_objects", "Objects of cluster stacks, by how ready they are.",
	[]string{"kind", "ready", "reason"}, nil)

// workloadClusters counts WorkloadClusters. Providers and phases are few.
var workloadClusters = prometheus.NewDesc("polder_workload_clusters", "WorkloadClusters, by their provider and phase.",
	[]string{"provider", "phase"}, nil)

// unreadableObjects counts objects that cannot be decoded. An Event says what is wrong with each, but only for a while.
var unreadableObjects = prometheus.NewDesc("polder_unreadable_objects", "Objects that no controller can read, by their kind.",
	[]string{"kind"}, nil)

// collectTimeout bounds the reads from the cache.
const collectTimeout = 5 * time.Second

// metricsCollector counts the objects in the cache whenever metrics are scraped.
type metricsCollector struct {
	cache      client.Reader
	unreadable *unreadable.Filter
}

// Describe sends the descriptions of all metrics.
func (metricsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- objectsReady
	ch <- workloadClusters
	ch <- unreadableObjects
}

// Collect sends the values of all metrics.
func (f metricsCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout) //nolint:forbidigo // Prometheus gives none
	defer cancel()
	f.collectUnreadable(ch)
	type state struct{ kind, ready, reason string }
	counts := map[state]int{}
	count := func(kind string, conditions []metav1.Condition) {
		s := state{kind, string(metav1.ConditionUnknown), "NotYetKnown"}
		if c := meta.FindStatusCondition(conditions, csv1.ConditionReady); c != nil {
			s.ready, s.reason = string(c.Status), c.Reason
		}
		counts[s]++
	}
	var stacks csv1.ClusterStackList
	var releases csv1.ClusterStackReleaseList
	var addons csv1.ClusterAddonList
	var clusters v1alpha1.WorkloadClusterList
	for _, l := range []client.ObjectList{&stacks, &releases, &addons, &clusters} {
		if err := f.cache.List(ctx, l); err != nil {
			return // the cache has stopped, and the process with it
		}
	}
	for i := range stacks.Items {
		count("ClusterStack", stacks.Items[i].Status.Conditions)
	}
	for i := range releases.Items {
		count("ClusterStackRelease", releases.Items[i].Status.Conditions)
	}
	for i := range addons.Items {
		count("ClusterAddon", addons.Items[i].Status.Conditions)
	}
	where := map[[2]string]int{}
	for i := range clusters.Items {
		phase := cmp.Or(clusters.Items[i].Status.Phase, v1alpha1.PhasePending)
		where[[2]string{clusters.Items[i].Spec.Provider, string(phase)}]++
	}
	for at, n := range where {
		ch <- prometheus.MustNewConstMetric(workloadClusters, prometheus.GaugeValue, float64(n), at[0], at[1])
	}
	for s, n := range counts {
		ch <- prometheus.MustNewConstMetric(objectsReady, prometheus.GaugeValue, float64(n), s.kind, s.ready, s.reason)
	}
}

// collectUnreadable sends how many objects of each kind cannot be read.
func (f metricsCollector) collectUnreadable(ch chan<- prometheus.Metric) {
	kinds := map[string]int{}
	for _, o := range f.unreadable.Unreadable() {
		kinds[o.Kind.Kind]++
	}
	for kind, n := range kinds {
		ch <- prometheus.MustNewConstMetric(unreadableObjects, prometheus.GaugeValue, float64(n), kind)
	}
}
