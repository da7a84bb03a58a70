//go:build fault

package operator

import (
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

// patience is above the longest time that a slow source is waited for.
const patience = 90 * time.Second

// slowly answers a byte now and then, until nobody listens any more.
func slowly(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// keepBusy keeps all cores busy until the test ends.
func keepBusy(t *testing.T) {
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// What is rare on a quiet machine: a version that is discovered and not yet served, and two who make one object.
func TestFaultDefinitionGainsAVersion(t *testing.T) {
	keepBusy(t)
	gainVersions(t, 300)
}

func TestFaultCreateAgainstApply(t *testing.T) { raceCreate(t, 1000) }

// Registries that are slow hold up nobody but those who use them, and are given up in time.
func TestFaultSlowRegistry(t *testing.T) {
	var slow []*walk
	for i := range 6 {
		w := newWalk(t)
		behind.set(w.ns, []http.HandlerFunc{slowly, silently}[i%2])
		w.repository = at(door, w.ns)
		w.stack(t, "stack", "1.36", nil)
		slow = append(slow, w)
	}
	for range 3 {
		w := newWalk(t)
		w.publish(t, "1.36", "v1", nil)
		w.stack(t, "stack", "1.36", nil)
		w.becomesReady(t, "stack", "v1")
	}
	for _, w := range slow {
		testenv.Eventually(t, patience, func() error { return w.unreachable(t, "was given up") })
	}
}

func (w *walk) unreachable(t *testing.T, words string) error {
	s := &csv1.ClusterStack{}
	if err := w.get(t, "stack", s); err != nil {
		return err
	}
	for _, c := range s.Status.Conditions {
		if c.Type == csv1.ConditionSourceAvailable && c.Reason == csv1.ReasonSourceUnreachable && strings.Contains(c.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("it does not say %q: %v", words, s.Status.Conditions)
}

// Files that come slowly hold up nobody else's, and are given up in time; then the registry is repaired.
func TestFaultSlowDownload(t *testing.T) {
	w := newWalk(t)
	there := newRegistry()
	behind.set(w.ns, there)
	w.repository = at(door, w.ns)
	publishAt(t, w.repository, stackregistry.Options{}, stackenv.BuildShipped(t, "local/scs", "1.36", "v1"))
	behind.set(w.ns, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			slowly(rw, r)
			return
		}
		there.ServeHTTP(rw, r)
	}))
	w.stack(t, "stack", "1.36", nil)
	other := newWalk(t)
	other.publish(t, "1.36", "v1", nil)
	other.stack(t, "stack", "1.36", nil)
	other.becomesReady(t, "stack", "v1")
	testenv.Eventually(t, patience, func() error {
		rel := &csv1.ClusterStackRelease{}
		if err := w.get(t, "local-scs-1-36-v1", rel); err != nil {
			return err
		}
		for _, c := range rel.Status.Conditions {
			if c.Type == csv1.ConditionDownloaded && c.Reason == csv1.ReasonSourceUnreachable && strings.Contains(c.Message, "sends almost nothing any more") {
				return nil
			}
		}
		return fmt.Errorf("the download is not given up: %v", rel.Status.Conditions)
	})
	behind.set(w.ns, there)
	testenv.Eventually(t, patience, func() error {
		rel := &csv1.ClusterStackRelease{}
		if err := w.get(t, "local-scs-1-36-v1", rel); err != nil {
			return err
		}
		if rel.Status.Ready == nil || !*rel.Status.Ready {
			return fmt.Errorf("it does not recover by itself: %v", rel.Status.Conditions)
		}
		return nil
	})
}

// The whole plane is killed while a stage holds an upgrade, and again while stages are applied; nothing is done twice,
// and nothing is left out.
func TestFaultKilledBetweenStages(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	flags := trusting(published.Host())
	p.Start(t, flags...)
	p.AwaitReady(t)
	w := &walk{mgmt: p.Client(t), ns: p.CreateNamespace(t)}
	w.repository = published.Repository("kill/" + w.ns)
	w.publish(t, "1.36", "v1", addonCharts(t, twin))
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	w.makeCluster(t, "1.36", "v1")
	w.addonsAre(t, "v1")
	w.workload = testenv.NewClient(t, testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "chance"}}
	w.has(t, true, secret)
	version := secret.ResourceVersion

	w.publish(t, "1.37", "v1", func(files archive.Tree) {
		addonCharts(t, twin)(files)
		text := string(files["clusteraddon.yaml"])
		i := strings.LastIndex(text, "    - {name: hooks, action: apply}")
		files["clusteraddon.yaml"] = []byte(text[:i] + `    - name: hooks
      action: apply
      waitForPreCondition:
        objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: kube-public}]
        conditions: gate.data.open == 'yes'
` + text[i+len("    - {name: hooks, action: apply}\n"):])
	})
	w.stack(t, "new", "1.37", nil)
	w.becomesReady(t, "new", "v1")
	w.moveTo(t, "1.37", "v1")
	waits := func() {
		t.Helper()
		w.says(t, &csv1.ClusterAddon{}, addonName, csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonStageWaiting, "stage hooks",
			"ConfigMap kube-public/gate is not there yet")
	}
	waits()
	p.Kill()
	p.Start(t, flags...)
	p.AwaitReady(t)
	waits() // nothing of the runtime hook was in memory
	if err := w.nodesHave(t, "v1.36."); err != nil {
		t.Errorf("the upgrade was not held: %v", err)
	}
	p.Kill()
	w.openGate(t) // while nobody looks
	p.Start(t, flags...)
	p.AwaitReady(t)
	testenv.Eventually(t, upgrade, func() error { return w.nodesHave(t, "v1.37.") })
	a := w.addonsFrom(t, "local-scs-1-37-v1")
	if a.Status.Hook != "BeforeClusterUpgrade" {
		t.Errorf("after the restart the stages are those of %s", a.Status.Hook)
	}
	w.has(t, true, secret, mapNamed("default", "no-hook"), widgetNamed("late"))
	if secret.ResourceVersion != version {
		t.Error("a generated Secret is another since the restart")
	}
	w.has(t, false, mapNamed("kube-public", "gone"), mapNamed("default", "brief"))

	// Killed at some moment of applying, many times: the end is always the same.
	for i := range 5 {
		w.greet(t, fmt.Sprintf("greeting %d", i))
		testenv.Eventually(t, soon, func() error { return w.mgmt.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), w.cluster) })
		p.Kill()
		p.Start(t, flags...)
		p.AwaitReady(t)
		w.greets(t, fmt.Sprintf("greeting %d", i))
		w.addonsFrom(t, "local-scs-1-37-v1")
		w.has(t, true, secret)
		if secret.ResourceVersion != version {
			t.Fatal("a generated Secret is another since the restart")
		}
	}
}
