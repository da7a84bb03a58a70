package operator

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// A stack serves clusters of the namespaces it allows, and no others.
func TestStackServesOtherNamespaces(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	tenant, stranger := shared.Get(t).CreateNamespace(t), shared.Get(t).CreateNamespace(t)
	label := fmt.Sprintf(`{"metadata":{"labels":{"served-by":%q}}}`, w.ns)
	if err := w.mgmt.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}},
		client.RawPatch(client.Merge.Type(), []byte(label))); err != nil {
		t.Fatal(err)
	}
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	of := func(namespace string) *clusterv1.Cluster {
		c := paused(namespace, "user", "local-scs-1-36-v1", kubernetesOf(t, "1.36"))
		c.Spec.Topology.ClassRef.Namespace = w.ns
		return c
	}
	refused := func(namespace string) {
		t.Helper()
		err := w.mgmt.Create(t.Context(), of(namespace), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "class "+w.ns+"/local-scs-1-36-v1 does not serve clusters of namespace "+namespace) ||
			!strings.Contains(err.Error(), "spec.allowedNamespaces") {
			t.Errorf("a cluster of namespace %s: %v", namespace, err)
		}
	}
	refused(tenant)
	s := &csv1.ClusterStack{}
	if err := w.get(t, "stack", s); err != nil {
		t.Fatal(err)
	}
	before := s.DeepCopy()
	s.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"served-by": w.ns}}
	if err := w.mgmt.Patch(t.Context(), s, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error { return w.mgmt.Create(t.Context(), of(tenant)) })
	refused(stranger)

	// Its add-ons are looked after there, and it keeps the release from being deleted.
	there := &walk{mgmt: w.mgmt, ns: tenant}
	a := &csv1.ClusterAddon{}
	there.says(t, a, csv1.AddonPrefix+"user", csv1.ConditionClusterReady, metav1.ConditionFalse, clusterv1.PausedReason)
	w.publish(t, "1.36", "v2", nil)
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v1,v2")
	for _, o := range []client.Object{s, &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "local-scs-1-36-v1"}}} {
		if err := w.mgmt.Delete(t.Context(), o); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "used by "+tenant+"/user") {
			t.Errorf("deleting %T, which a cluster of another namespace uses: %v", o, err)
		}
	}
	if err := w.mgmt.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "used by "+tenant+"/user") {
		t.Errorf("deleting the namespace of a class that a cluster of another namespace uses: %v", err)
	}

	// Nobody gets a class by asking for it before it is there.
	early := paused(stranger, "early", "local-scs-1-36-v3", kubernetesOf(t, "1.36"))
	early.Spec.Topology.ClassRef.Namespace = w.ns
	if err := w.mgmt.Create(t.Context(), early); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "there is no class "+w.ns+"/local-scs-1-36-v3 yet") {
		t.Errorf("a cluster of a class that is not there yet: %v", err)
	}

	// Clusters that are not served any more say so at once.
	run := `{"spec":{"paused":false}}`
	if err := w.mgmt.Patch(t.Context(), of(tenant), client.RawPatch(client.Merge.Type(), []byte(run))); err != nil {
		t.Fatal(err)
	}
	there.says(t, a, csv1.AddonPrefix+"user", csv1.ConditionClusterReady, metav1.ConditionFalse, csv1.ReasonNotInitialized)
	unlabel := `{"metadata":{"labels":{"served-by":null}}}`
	if err := w.mgmt.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}},
		client.RawPatch(client.Merge.Type(), []byte(unlabel))); err != nil {
		t.Fatal(err)
	}
	there.says(t, a, csv1.AddonPrefix+"user", csv1.ConditionClusterReady, metav1.ConditionFalse, csv1.ReasonNotAllowed, "spec.allowedNamespaces")
}

// Clusters that are not made of a release are nobody's business here, whatever their class is called.
func TestOtherClustersAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	testenv.InstallStubClass(t, w.mgmt, w.ns) // called stub
	class := &clusterv1.ClusterClass{}
	if err := w.get(t, "stub", class); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"local-scs-1-36-v7", "local-scs-1-37-v1"} { // as of a release that there is not, and of one not of this content
		alike := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: class.Spec}
		if err := w.mgmt.Create(t.Context(), alike); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(t, "1.36", "v1", nil)
	w.publish(t, "1.37", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.stack(t, "taken", "1.37", nil)
	w.becomesReady(t, "stack", "v1")
	w.says(t, &csv1.ClusterStackRelease{}, "local-scs-1-37-v1", csv1.ConditionApplied, metav1.ConditionFalse, csv1.ReasonApplyFailed,
		"ClusterClass "+w.ns+"/local-scs-1-37-v1 belongs to somebody else")
	for name, class := range map[string]string{"a": "stub", "b": "local-scs-1-36-v7", "c": "local-scs-1-37-v1", "witness": "local-scs-1-36-v1"} {
		c := paused(w.ns, name, class, kubernetesOf(t, "1.36"))
		if err := w.mgmt.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	bare := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "bare"}} // without topology
	bare.Spec.Paused = paused("", "", "", "").Spec.Paused
	bare.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalCluster", Name: "bare"}
	if err := w.mgmt.Create(t.Context(), bare); err != nil {
		t.Errorf("a cluster without topology: %v", err)
	}
	w.says(t, &csv1.ClusterAddon{}, csv1.AddonPrefix+"witness", csv1.ConditionClusterReady, metav1.ConditionFalse, clusterv1.PausedReason)
	var l csv1.ClusterAddonList
	if err := w.mgmt.List(t.Context(), &l, client.InNamespace(w.ns)); err != nil || len(l.Items) != 1 {
		t.Errorf("%d ClusterAddons, want that of the witness: %v", len(l.Items), err)
	}
	// And they may have any version.
	other := paused(w.ns, "d", "local-scs-1-36-v7", "v1.34.1")
	if err := w.mgmt.Create(t.Context(), other, client.DryRunAll); err != nil {
		t.Errorf("another version with a class by hand: %v", err)
	}
}
