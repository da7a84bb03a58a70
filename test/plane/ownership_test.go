package plane

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

func TestOwnedObjectsGoWithTheirOwner(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	owner := &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owner"},
		Spec:       clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip}},
	}
	if err := c.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDrainRule", Name: owner.Name, UID: owner.UID,
	}}}}
	free := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "free"}}
	for _, o := range []client.Object{owned, free} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error { return gone(t, c, owned) })
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(free), free); err != nil {
		t.Errorf("what nobody owns must stay: %v", err)
	}
}

func gone(t *testing.T, c client.Client, o client.Object) error {
	err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%T %s is still there, finalizers %v", o, o.GetName(), o.GetFinalizers())
	}
	return err
}

func TestNamespaceFullOfClustersIsDeleted(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, c, ns)
	for _, name := range []string{"a", "b"} {
		if err := c.Create(t.Context(), testenv.StubCluster(t, ns, name)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, wait, func() error { return hasChildren(t, c, ns, "b") })
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 2*wait, func() error { return gone(t, c, o) })
}

// The API server enforces a quota a moment after it was made, when its own watch has it: until then objects pass, and are not counted. So the
// quota begins with none, and the test with a refusal.
func TestQuotaCountsClusters(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	checkQuota(t, c, p.CreateNamespace(t))
}

func checkQuota(t *testing.T, c client.Client, ns string) {
	t.Helper()
	const counted = corev1.ResourceName("count/machinedrainrules.cluster.x-k8s.io")
	hard := func(n string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse(n)}}
	}
	rule := func(name string) *clusterv1.MachineDrainRule {
		return &clusterv1.MachineDrainRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip}},
		}
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rules"}, Spec: hard("0")}
	if err := c.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := c.Create(t.Context(), rule("none"), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("an object over a quota of none got: %w", err)
		}
		return nil
	})
	if err := c.Patch(t.Context(), &corev1.ResourceQuota{ObjectMeta: q.ObjectMeta, Spec: hard("1")}, client.MergeFrom(q)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), rule("first")) })
	if err := c.Create(t.Context(), rule("second")); !apierrors.IsForbidden(err) {
		t.Fatalf("the second object over a quota of one got: %v", err)
	}
	// What is deleted may be made again.
	if err := c.Delete(t.Context(), rule("first")); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), rule("second")) })
}

func TestClusterRolesAreAggregated(t *testing.T) {
	c := shared.Get(t).Client(t)
	sum := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{GenerateName: "sum-"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"test/sum": "yes"}}}},
	}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "part-", Labels: map[string]string{"test/sum": "yes"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	for _, o := range []client.Object{sum, part} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(sum), sum); err != nil {
			return err
		}
		if len(sum.Rules) != 1 {
			return fmt.Errorf("rules are %v", sum.Rules)
		}
		return nil
	})
}
