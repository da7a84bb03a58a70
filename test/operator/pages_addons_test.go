package operator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestAddonsThroughPages is about a cluster behind a balancer that answers with pages now and then, while add-ons go
// from release to release and while the cluster is deleted.
func TestAddonsThroughPages(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", addonCharts(t, twin))
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	w.makeCluster(t, "1.36", "v1")
	w.addonsAre(t, "v1")
	straight := testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name)
	w.workload = testenv.NewClient(t, straight)
	theirs := mapNamed("default", "theirs")
	theirs.Data = map[string]string{"colour": "red"} // which the release has no word about
	if err := w.workload.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}

	b := newBalancer(t, straight)
	w.replaceKubeconfig(t, w.kubeconfigThrough(t, b))
	b.answer(inBursts())
	w.upgradeTo(t, "v2", "v1,v2", theirObject)
	testenv.Eventually(t, create, func() error { return w.refuses(t, "v2", "ConfigMap default/theirs belongs to somebody else") })
	w.isUntouched(t, theirs)
	w.upgradeTo(t, "v3", "v2,v3", "")
	testenv.Eventually(t, create, func() error { return w.isAt(t, "v3") })
	for i := range 4 {
		w.greet(t, fmt.Sprintf("hello for the %d. time", i))
		w.greets(t, fmt.Sprintf("hello for the %d. time", i))
	}
	b.answer(nil)
	w.isUntouched(t, theirs)
	w.has(t, false, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "same"}}, mapNamed("things", "unknown"),
		mapNamed("kube-public", "gone"))
	w.has(t, true, widgetNamed("early"), widgetNamed("late"))
	w.nothingIsForgotten(t)
	if b.answered < 10 {
		t.Errorf("there were %d pages", b.answered)
	}
	t.Logf("%d pages", b.answered)

	b.answer(inBursts())
	w.everythingGoes(t)
	b.answer(nil)
}

// inBursts answers half of some requests with a page, and then many with none: a run of the operator can succeed in
// between.
func inBursts() func(*http.Request) http.HandlerFunc {
	random := rand.New(rand.NewPCG(1, 2))
	all := []string{"not found", "not found in HTML", "HTML", "JSON of another program", "a Status that names nothing", "bad gateway", "redirect"}
	n := 0
	return func(*http.Request) http.HandlerFunc {
		if n++; n%80 >= 20 || random.IntN(2) == 0 {
			return nil
		}
		return pages[all[random.IntN(len(all))]]
	}
}

// kubeconfigThrough is the cluster's kubeconfig, with the balancer's address.
func (w *walk) kubeconfigThrough(t *testing.T, b *balancer) []byte {
	t.Helper()
	good, _ := w.kubeconfigs(t, "")
	config, err := clientcmd.Load(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = b.URL, b.certificate()
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refuses returns nil if the add-ons of a version are not applied for this reason.
func (w *walk) refuses(t *testing.T, v, words string) error {
	a, err := w.addon(t.Context())
	if err != nil {
		return err
	}
	for _, c := range a.Status.Conditions {
		if a.Status.Target == w.ns+"/local-scs-1-36-"+v && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("of %s: %v", a.Status.Target, a.Status.Conditions)
}

func (w *walk) isAt(t *testing.T, v string) error {
	a, err := w.addon(t.Context())
	if err != nil {
		return err
	}
	if a.Status.Release != w.ns+"/local-scs-1-36-"+v ||
		slices.ContainsFunc(a.Status.Resources, func(r csv1.Resource) bool { return r.Name == "same" && r.Kind == "ServiceAccount" }) {
		return fmt.Errorf("the add-ons are of %s: %v", a.Status.Release, a.Status.Conditions)
	}
	return nil
}

func (w *walk) isUntouched(t *testing.T, theirs *corev1.ConfigMap) {
	t.Helper()
	c := mapNamed(theirs.Namespace, theirs.Name)
	if err := w.inCluster(t, c); err != nil {
		t.Fatalf("what was theirs: %v", err)
	}
	if c.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was written: %v, %v", c.Labels, c.Data)
	}
}

// nothingIsForgotten checks that all objects of ours in the cluster are in the inventory.
func (w *walk) nothingIsForgotten(t *testing.T) {
	t.Helper()
	a, err := w.addon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, kind := range []string{"v1/ConfigMap", "v1/Secret", "v1/ServiceAccount", "example.com/v1/Widget", "apiextensions.k8s.io/v1/CustomResourceDefinition",
		"v1/Namespace"} {
		i := strings.LastIndex(kind, "/")
		l := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: kind[:i], Kind: kind[i+1:] + "List"}}
		if err := w.workload.List(t.Context(), l, client.MatchingLabels{csv1.OwnedLabel: csv1.OwnedValue}); err != nil {
			t.Fatal(err)
		}
		for _, m := range l.Items {
			found++
			if !slices.ContainsFunc(a.Status.Resources, func(r csv1.Resource) bool { return r.Kind == kind[i+1:] && r.Name == m.Name }) {
				t.Errorf("%s %s/%s is ours, and is forgotten", kind, m.Namespace, m.Name)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d objects are ours", found)
	}
}
