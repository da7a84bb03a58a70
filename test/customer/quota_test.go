package customer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// countedQuota waits until a namespace has its default quota, and the quota has been counted.
func countedQuota(t *testing.T, c client.Client, ns string) *corev1.ResourceQuota {
	t.Helper()
	q := &corev1.ResourceQuota{}
	testenv.Eventually(t, soon, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "polder-default"}, q); err != nil {
			return err
		}
		if len(q.Status.Used) != len(q.Spec.Hard) {
			return fmt.Errorf("counted so far: %v", q.Status.Used)
		}
		return nil
	})
	return q
}

// setLimit changes a limit, as the platform operator does, and waits until it counts.
func setLimit(t *testing.T, c client.Client, ns string, name corev1.ResourceName, most int64) {
	t.Helper()
	q := countedQuota(t, c, ns)
	patch := fmt.Sprintf(`{"spec":{"hard":{%q:"%d"}}}`, name, most)
	if err := c.Patch(t.Context(), q, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil {
			return err
		}
		if got := q.Status.Hard[name]; got.Value() != most {
			return fmt.Errorf("it counts up to %s", &got)
		}
		return nil
	})
}

// TestDefaultQuota follows the quota of a namespace: it comes with the label, the platform operator's changes stay, it
// comes again if it is deleted, and never where he has said that the quota is his own.
func TestDefaultQuota(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	own := customerNamespace(t, c, map[string]string{"polder.dev/quota": "own"})
	ns := customerNamespace(t, c, nil)
	q := countedQuota(t, c, ns)
	uid := q.UID
	setLimit(t, c, ns, "count/configmaps", 7)
	if err := c.Delete(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil || q.UID == uid {
			return fmt.Errorf("it is not there again: %w", err)
		}
		return nil
	})
	if got := q.Spec.Hard["count/configmaps"]; got.Value() != 100 {
		t.Errorf("%s", &got)
	}
	unlabelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.CreateNamespace(t)}}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"polder.dev/customer":""}}}`))
	if err := c.Patch(t.Context(), unlabelled, label); err != nil {
		t.Fatal(err)
	}
	countedQuota(t, c, unlabelled.Name)
	// By now the controller has seen the first namespace as well.
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: own, Name: q.Name}, q); !apierrors.IsNotFound(err) {
		t.Errorf("a quota was made beside that of the platform operator: %v", err)
	}
}

// uncounted are kinds that customers may create and the quota does not count, each with the reason.
var uncounted = map[string]string{
	"events":               "they expire, and Kubernetes counts none",
	"events.events.k8s.io": "as above",
	"bindings":             "not stored",
	"localsubjectaccessreviews.authorization.k8s.io": "not stored",
}

// TestDefaultQuotaCountsAll compares the quota with what customers may create: with our role, and with those of
// Kubernetes.
func TestDefaultQuotaCountsAll(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns := customerNamespace(t, admin, nil)
	q := countedQuota(t, admin, ns)
	d, err := discovery.NewDiscoveryClientForConfig(p.RESTConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	served, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, role := range []string{"polder:customer", "edit", "admin"} {
		customer := clientOf(t, p, ns, strings.ReplaceAll(role, ":", "-"), role)
		for _, l := range served {
			group, _, found := strings.Cut(l.GroupVersion, "/")
			if !found {
				group = ""
			}
			for _, r := range l.APIResources {
				if !slices.Contains(r.Verbs, "create") || strings.Contains(r.Name, "/") {
					continue
				}
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Group: group, Resource: r.Name},
				}}
				if err := customer.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if !review.Status.Allowed {
					continue
				}
				kinds++
				name := strings.TrimSuffix(r.Name+"."+group, ".")
				if _, ok := q.Spec.Hard[corev1.ResourceName("count/"+name)]; !ok && uncounted[name] == "" {
					t.Errorf("%s may create %s, which nobody counts", role, name)
				}
			}
		}
	}
	if kinds < 8 {
		t.Errorf("only %d kinds were found", kinds)
	}
}

// TestQuotaBoundsCustomers does what a customer once did: sixty requests for access, and sixty clusters of five.
func TestQuotaBoundsCustomers(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	catalogueIsThere(t, admin)
	ns := customerNamespace(t, admin, nil)
	countedQuota(t, admin, ns)
	customer := clientOf(t, p, ns, "alice", "polder:customer")
	clusters, refusal := 0, error(nil)
	for i := range 60 {
		o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("c%d", i)}}
		o.Spec.Provider, o.Spec.Paused, o.Spec.Stack = "local", ptr.To(true), v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37"}
		o.Spec.ControlPlane.Replicas = ptr.To[int32](5)
		if err := customer.Create(t.Context(), o); err != nil {
			refusal = err
			continue
		}
		clusters++
	}
	// A cluster that has just been made may not be known to admission yet; the quota itself counts without delay.
	if clusters < 16 || clusters > 20 || refusal == nil {
		t.Errorf("%d clusters, then %v", clusters, refusal)
	}
	testenv.Eventually(t, soon, func() error {
		o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "late"}}
		o.Spec.Provider, o.Spec.Stack = "local", v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37"}
		o.Spec.ControlPlane.Replicas = ptr.To[int32](5)
		err := customer.Create(t.Context(), o, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "together may have 100 machines (ResourceQuota polder-default); while its machines are replaced, this one needs 6") {
			return fmt.Errorf("it got: %w", err)
		}
		return nil
	})
	requests, refused := 0, error(nil)
	for i := range 60 {
		r := &v1alpha1.KubeconfigRequest{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("r%d", i)}}
		r.Spec = v1alpha1.KubeconfigRequestSpec{ClusterName: "c0", Role: v1alpha1.RoleViewer, ExpirationSeconds: 3600}
		if err := customer.Create(t.Context(), r); err != nil {
			refused = err
			continue
		}
		requests++
	}
	if requests != 20 || refused == nil || !strings.Contains(refused.Error(), "20 requests of namespace "+ns+" wait for their answer already") {
		t.Errorf("%d requests, then %v", requests, refused)
	}
	if err := admin.DeleteAllOf(t.Context(), &v1alpha1.WorkloadCluster{}, client.InNamespace(ns)); err != nil {
		t.Error(err)
	}
}

// TestQuotaIsShown lowers the quota below what a cluster needs that was accepted before: its status says so, and it goes
// on once there is room.
func TestQuotaIsShown(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	catalogueIsThere(t, admin)
	c := &cli{t: t, p: p, ns: customerNamespace(t, admin, nil)}
	const machines = corev1.ResourceName("count/machines.cluster.x-k8s.io")
	countedQuota(t, admin, c.ns)
	c.does(`{apiVersion: polder.dev/v1alpha1, kind: WorkloadCluster, metadata: {name: demo}, spec: {provider: local, stack: {name: scs}, paused: true}}`,
		"create", "-f", "-")
	setLimit(t, admin, c.ns, machines, 0)
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: "demo"}}
	if err := admin.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":null}}`))); err != nil {
		t.Fatal(err)
	}
	want := "machines cannot be made: ResourceQuota polder-default of namespace " + c.ns + " allows 0 machines, and there are 0"
	testenv.Eventually(t, soon, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Message != want || o.Status.Phase != v1alpha1.PhaseStalled {
			return fmt.Errorf("%+v, %w", o.Status, err)
		}
		return nil
	})
	testenv.Eventually(t, soon, func() error { // the cache of admission may still have the limit from before
		if a := c.run("", "scale", "demo", "--control-planes", "3"); a.code != 2 || !strings.Contains(a.err, "together may have 0 machines (ResourceQuota polder-default)") {
			return fmt.Errorf("%d: %s", a.code, a.err)
		}
		return nil
	})
	setLimit(t, admin, c.ns, machines, 10)
	testenv.Eventually(t, create, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Phase != v1alpha1.PhaseReady {
			return fmt.Errorf("%+v, %w", o.Status, err)
		}
		return nil
	})
	c.does("", "delete", "demo", "--yes", "--wait", "--timeout", "3m")
}
