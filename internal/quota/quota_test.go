package quota_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
)

func TestMachinesNeeded(t *testing.T) {
	pool := func(replicas *int32, zones ...string) v1alpha1.WorkerPool {
		return v1alpha1.WorkerPool{Name: "a", Replicas: replicas, Zones: zones}
	}
	for name, c := range map[string]struct {
		controlPlane *int32
		pools        []v1alpha1.WorkerPool
		want         int64
	}{
		"nothing said":             {nil, nil, 2},
		"five":                     {ptr.To[int32](5), nil, 6},
		"a pool":                   {ptr.To[int32](3), []v1alpha1.WorkerPool{pool(ptr.To[int32](2))}, 4 + 3},
		"a pool of one":            {ptr.To[int32](1), []v1alpha1.WorkerPool{pool(nil)}, 2 + 2},
		"an empty pool":            {ptr.To[int32](1), []v1alpha1.WorkerPool{pool(ptr.To[int32](0))}, 2},
		"a pool of two zones":      {ptr.To[int32](1), []v1alpha1.WorkerPool{pool(ptr.To[int32](3), "x", "y")}, 2 + 3 + 2},
		"more zones than machines": {ptr.To[int32](1), []v1alpha1.WorkerPool{pool(ptr.To[int32](1), "x", "y")}, 2 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.WorkloadCluster{}
			o.Spec.ControlPlane.Replicas, o.Spec.Workers = c.controlPlane, c.pools
			if got := quota.MachinesNeeded(o); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// newQuota makes a ResourceQuota with limits, and how much of each is used.
func newQuota(name string, used, hard map[corev1.ResourceName]int64) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	list := func(in map[corev1.ResourceName]int64) corev1.ResourceList {
		out := corev1.ResourceList{}
		for k, v := range in {
			out[k] = *resource.NewQuantity(v, resource.DecimalSI)
		}
		return out
	}
	q.Spec.Hard, q.Status.Hard, q.Status.Used = list(hard), list(hard), list(used)
	return q
}

func TestLimitOfMachines(t *testing.T) {
	elsewhere := newQuota("x", nil, map[corev1.ResourceName]int64{quota.Machines: 1})
	elsewhere.Namespace = "b"
	for name, c := range map[string]struct {
		quotas []client.Object
		want   *quota.MachineLimit
	}{
		"none":            {[]client.Object{elsewhere}, nil},
		"one without":     {[]client.Object{newQuota("x", nil, map[corev1.ResourceName]int64{"secrets": 1})}, nil},
		"the default one": {[]client.Object{quota.Default("a")}, &quota.MachineLimit{Quota: "polder-default", Most: 100}},
		"the lowest": {[]client.Object{quota.Default("a"), newQuota("own", nil, map[corev1.ResourceName]int64{quota.Machines: 7})},
			&quota.MachineLimit{Quota: "own", Most: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := quota.LimitOfMachines(t.Context(), fake.NewClientBuilder().WithObjects(c.quotas...).Build(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExhausted(t *testing.T) {
	limits := map[corev1.ResourceName]int64{quota.Machines: 5, "count/secrets": 9, "count/configmaps": 1}
	for name, c := range map[string]struct {
		used map[corev1.ResourceName]int64
		make bool
		want string
	}{
		"room for all":                   {map[corev1.ResourceName]int64{quota.Machines: 4, "count/secrets": 8}, true, ""},
		"not counted yet":                {nil, true, ""},
		"no machines":                    {map[corev1.ResourceName]int64{quota.Machines: 5}, true, "ResourceQuota own of namespace a allows 5 machines, and there are 5"},
		"no machines, and none is to be": {map[corev1.ResourceName]int64{quota.Machines: 5}, false, ""},
		"too many Secrets":               {map[corev1.ResourceName]int64{"count/secrets": 12}, false, "ResourceQuota own of namespace a allows 9 Secrets, and there are 12"},
		"what clusters do not need":      {map[corev1.ResourceName]int64{"count/configmaps": 1}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := quota.Exhausted(t.Context(), fake.NewClientBuilder().WithObjects(newQuota("own", c.used, limits)).Build(), "a", c.make)
			if err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}
