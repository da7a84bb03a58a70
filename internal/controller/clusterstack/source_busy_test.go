package clusterstack

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases"
)

// A source that was not read because others were is tried again soon: it has not failed, and the check is still due.
func TestCheckSourceWaitsForItsTurn(t *testing.T) {
	var asked atomic.Int32
	open := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-open
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	l, err := releases.New(releases.Config{Dir: filepath.Join(t.TempDir(), "cache"), Trusted: []string{host}, Secrets: newClient(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := newBareReconciler()
	r.Releases = l
	stack := func(name string) *csv1.ClusterStack {
		return newStack(func(o *csv1.ClusterStack) {
			o.Name, o.Spec.Source = name, &csv1.Source{OCI: "oci://" + host + "/" + name}
		})
	}
	var all sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		all.Go(func() {
			s := newScope(stack(name))
			if err := r.checkSource(t.Context(), s); err != nil || s.source.failures != 1 {
				t.Errorf("%s: %+v, %v", name, s.source, err)
			}
		})
	}
	for limit := time.Now().Add(10 * time.Second); asked.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("nobody asks")
		}
	}
	third := newScope(stack("three"))
	third.object.Annotations = map[string]string{csv1.RequestedAtAnnotation: "now"}
	if err := r.checkSource(t.Context(), third); err != nil || third.source.answered {
		t.Errorf("%+v, %v", third.source, err)
	}
	checkNextTime(t, third.source.nextCheck, initialBackoff)
	c := meta.FindStatusCondition(third.object.Status.Conditions, csv1.ConditionSourceAvailable)
	if c == nil || c.Reason != csv1.ReasonSourceBusy || !strings.Contains(c.Message, "turn") {
		t.Errorf("%+v", c)
	}
	if third.object.Status.LastHandledReconcileAt != nil {
		t.Error("it is said to be done")
	}
	close(open)
	all.Wait()
	if err := r.checkSource(t.Context(), third); err != nil || third.source.failures != 1 || third.object.Status.LastHandledReconcileAt == nil {
		t.Errorf("afterwards: %+v, %v", third.source, err)
	}
	if c := meta.FindStatusCondition(third.object.Status.Conditions, csv1.ConditionSourceAvailable); c.Reason != csv1.ReasonSourceUnreachable {
		t.Errorf("afterwards: %+v", c)
	}
}
