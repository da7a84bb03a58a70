package plane

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// get reads a path of the API as the administrator.
func get(t *testing.T, path string) string {
	t.Helper()
	return shared.Get(t).GetPath(t, path)
}

func TestReadyzNamesEachComponent(t *testing.T) {
	text := get(t, "/readyz?verbose")
	for _, c := range shared.Get(t).Status(t).Components {
		if !strings.Contains(text, "[+]polder-"+c.Name+" ok") {
			t.Errorf("/readyz does not name %s:\n%s", c.Name, text)
		}
	}
}

// Who has not logged in learns whether the plane is ready, and not what it is made of.
func TestReadyzNamesNothingToAnonymous(t *testing.T) {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	base := shared.Get(t).Status(t).Address
	for _, path := range []string{"/readyz", "/readyz?verbose", "/readyz?verbose=true&exclude=polder-etcd", "/livez?verbose"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK || string(b) != "ok" {
			t.Errorf("%s: %d, %v: %s", path, res.StatusCode, err, b)
		}
	}
}

func TestMetrics(t *testing.T) {
	for path, metric := range map[string]string{
		"/metrics":             "apiserver_request_total",
		"/metrics/controllers": `controller_runtime_reconcile_total{controller="topology/cluster"`,
		"/metrics/etcd":        "etcd_disk_wal_fsync_duration_seconds_count",
	} {
		if text := get(t, path); !strings.Contains(text, metric) {
			t.Errorf("%s lacks %s", path, metric)
		}
	}
	if text := get(t, "/metrics/controllers"); !strings.Contains(text, `polder_component_ready{component="cluster-api"} 1`) {
		t.Error("no metric tells which components are ready")
	}
}

func TestVersion(t *testing.T) {
	text := get(t, "/version")
	if want := shared.Get(t).Status(t).Versions.Kubernetes; !strings.Contains(text, `"gitVersion": "`+want+`"`) || want == "" {
		t.Errorf("/version is not %s: %s", want, text)
	}
}
