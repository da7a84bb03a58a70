package plane

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/polder-kaas/polder/internal/plane/status"
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

// Metrics of the scheduled backups. Without a schedule there are none.
var (
	backupLastSuccess = prometheus.NewDesc("polder_backup_last_success_timestamp_seconds",
		"When the newest scheduled backup was made.", nil, nil)
	backupSize     = prometheus.NewDesc("polder_backup_last_size_bytes", "Size of the newest scheduled backup.", nil, nil)
	backupDuration = prometheus.NewDesc("polder_backup_last_duration_seconds",
		"How long the newest scheduled backup took; 0 if an earlier run made it.", nil, nil)
	backupFailing = prometheus.NewDesc("polder_backup_failing", "Whether the last try of a scheduled backup failed.", nil,
		nil)
)

// backupMetrics reads the status of the scheduled backups when metrics are collected.
type backupMetrics struct {
	status func() status.Backup
}

// Describe implements prometheus.Collector.
func (backupMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backupLastSuccess, backupSize, backupDuration, backupFailing} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m backupMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.status()
	if s.Dir == "" {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	failing := 0.0
	if s.Problem != "" {
		failing = 1
	}
	gauge(backupFailing, failing)
	if s.Last != nil {
		gauge(backupLastSuccess, float64(s.Last.CreatedAt.Unix()))
		gauge(backupSize, float64(s.Last.Size))
		gauge(backupDuration, s.Last.Seconds)
	}
}
