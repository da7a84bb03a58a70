package plane

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/polder-kaas/polder/internal/plane/supervisor"
)

// metricsHandlers serve what the API server's own /metrics does not hold: the metrics of the controllers with our
// own, and those of the store.
func metricsHandlers(own prometheus.Gatherer) map[string]http.Handler {
	serve := func(g ...prometheus.Gatherer) http.Handler {
		return promhttp.HandlerFor(prometheus.Gatherers(g), promhttp.HandlerOpts{})
	}
	return map[string]http.Handler{
		"/metrics/controllers": serve(ctrlmetrics.Registry, own),
		"/metrics/etcd":        serve(prometheus.DefaultGatherer),
	}
}

// componentReady is 1 for each component that is ready and 0 for each that is not.
var componentReady = prometheus.NewDesc("polder_component_ready", "Whether a component of the plane is ready.",
	[]string{"component"}, nil)

// componentMetrics reads the supervisor's status table when metrics are collected.
type componentMetrics struct {
	status func() []supervisor.Status
}

// Describe implements prometheus.Collector.
func (componentMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- componentReady }

// Collect implements prometheus.Collector.
func (m componentMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m.status() {
		v := 0.0
		if s.State == supervisor.Ready {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(componentReady, prometheus.GaugeValue, v, s.Name)
	}
}
