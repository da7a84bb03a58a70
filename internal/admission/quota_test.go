package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/quota/counted"
)

// All clusters of a namespace together fit into its quota, with room to replace machines. What is there stays editable.
func TestMachineQuota(t *testing.T) {
	sized := func(name string, controlPlane, workers int32) *v1alpha1.WorkloadCluster {
		return cluster(func(o *v1alpha1.WorkloadCluster) {
			o.Name, o.Spec.ControlPlane.Replicas, o.Spec.Workers[0].Replicas = name, ptr.To(controlPlane), ptr.To(workers)
			o.Spec.Workers[0].MachineType = "small"
		})
	}
	for name, c := range map[string]struct {
		most    int64 // 0 if there is no quota
		others  []*v1alpha1.WorkloadCluster
		o, old  *v1alpha1.WorkloadCluster
		refused string
	}{
		"no quota":                      {0, nil, sized("demo", 5, 50), nil, ""},
		"one that fits":                 {9, nil, sized("demo", 3, 4), nil, ""},
		"one that could not be changed": {8, nil, sized("demo", 3, 4), nil, "all clusters of namespace a together may have 8 machines (ResourceQuota polder-default); while its machines are replaced, this one needs 9, and the others need 0"},
		"beside another":                {12, []*v1alpha1.WorkloadCluster{sized("other", 1, 1)}, sized("demo", 3, 4), nil, "this one needs 9, and the others need 4"},
		"one that grows":                {9, nil, sized("demo", 3, 5), sized("demo", 3, 4), "this one needs 10"},
		"one that shrinks too little":   {5, nil, sized("demo", 3, 3), sized("demo", 3, 4), ""},
		"the same, of another value":    {5, nil, sized("demo", 3, 4), sized("demo", 5, 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if c.most > 0 {
				q := quota.Default("a")
				q.Spec.Hard[quota.Machines] = *resource.NewQuantity(c.most, resource.DecimalSI)
				w.add(q)
			}
			for _, other := range c.others {
				w.add(other)
			}
			if c.old != nil {
				w.add(c.old)
			}
			errs, err := w.checker(t).Check(t.Context(), c.o, c.old, false)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(errorTexts(errs), "\n")
			if (got == "") != (c.refused == "") || !strings.Contains(got, c.refused) {
				t.Errorf("%s, want %q", got, c.refused)
			}
		})
	}
	for _, failing := range []any{&corev1.ResourceQuotaList{}, &v1alpha1.WorkloadClusterList{}} {
		w := newWorld().add(quota.Default("a"))
		w.failing = failing
		if _, err := w.checker(t).Check(t.Context(), cluster(), nil, false); err == nil {
			t.Errorf("%T cannot be read, and nobody says so", failing)
		}
	}
}

// What clusters ask for fits into the quota, also while their provider is away. Nothing is reserved by a try or by what is
// refused for another reason.
func TestAskedQuota(t *testing.T) {
	sized := func(name string, workers int32) *v1alpha1.WorkloadCluster {
		return cluster(func(o *v1alpha1.WorkloadCluster) {
			o.Name, o.Spec.Workers[0].Replicas, o.Spec.Workers[0].MachineType = name, ptr.To(workers), "small"
		})
	}
	newWorld := func() *world {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}}
		q.Spec.Hard = corev1.ResourceList{counted.Machines: resource.MustParse("6")}
		return newWorld().add(q)
	}
	check := func(c *admission.Checker, o, old *v1alpha1.WorkloadCluster, dryRun bool, want string) {
		t.Helper()
		errs, err := c.Check(t.Context(), o, old, dryRun)
		if got := strings.Join(errorTexts(errs), "\n"); err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s, %v, want %q", got, err, want)
		}
	}
	c := newWorld().checker(t)
	check(c, sized("one", 4), nil, true, "")
	bad := sized("bad", 4)
	bad.Spec.Network.PodCIDRs = []string{"x"}
	check(c, bad, nil, false, "podCIDRs")
	check(c, sized("two", 3), nil, false, "")
	check(c, sized("two", 3), nil, false, "") // tried again
	check(c, sized("three", 2), nil, false, "spec: Forbidden: 4 of 6 machines are used, and this asks for 3 more (ResourceQuota q of namespace a)")
	check(c, sized("four", 1), nil, false, "")

	old := sized("demo", 3)
	away := newWorld().add(old).without("Provider/local").checker(t)
	check(away, sized("demo", 6), old, false, "4 of 6 machines are used, and this asks for 3 more")
	check(away, sized("demo", 1), old, false, "")
}
