package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/quota/counted"
	"github.com/polder-kaas/polder/provider"
)

// describe knows a cloud with types of its own, and one that makes any shape.
func describe(name string) (provider.Description, bool) {
	switch name {
	case "cloud":
		return provider.Description{Name: "cloud", MachineTypes: []v1alpha1.MachineType{
			{Name: "m1.small", Portable: "SCS-2V-4", CPU: 2, MemoryMiB: 4096, DiskGB: 20}, {Name: "m1.large", CPU: 8, MemoryMiB: 32768},
		}}, true
	case "local":
		return provider.Description{Name: "local", AnyShape: true}, true
	}
	return provider.Description{}, false
}

func format(l corev1.ResourceList) string {
	var out []string
	for _, name := range counted.All() {
		if q, ok := l[name]; ok {
			out = append(out, fmt.Sprintf("%s %s", &q, counted.Describe(name)))
		}
	}
	return strings.Join(out, ", ")
}

// TestUsage reads clusters as they are stored, and as the command line writes them: both ask for the same.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"nothing said":         {`{"provider":"local"}`, "1 clusters, 1 machines of control planes, 1 machines, 0 CPUs, 0 memory, 0 disk"},
		"no such provider":     {`{"provider":"x","controlPlane":{"replicas":3,"machineType":"SCS-2V-4"}}`, "1 clusters, 3 machines of control planes, 3 machines, 0 CPUs, 0 memory, 0 disk"},
		"portable":             {`{"provider":"local","controlPlane":{"replicas":3,"machineType":"SCS-2V-4-20"},"workers":[{"replicas":2,"machineType":"SCS-1V-2"},{"replicas":0,"machineType":"SCS-8V-64"},{"machineType":"SCS-1V-2"}]}`, "1 clusters, 3 machines of control planes, 6 machines, 9 CPUs, 18Gi memory, 60G disk"},
		"the provider's own":   {`{"provider":"cloud","controlPlane":{"machineType":"m1.large"}}`, "1 clusters, 1 machines of control planes, 1 machines, 8 CPUs, 32Gi memory, 0 disk"},
		"what is called so":    {`{"provider":"cloud","controlPlane":{"machineType":"SCS-2V-4"}}`, "1 clusters, 1 machines of control planes, 1 machines, 2 CPUs, 4Gi memory, 20G disk"},
		"the smallest that is": {`{"provider":"cloud","controlPlane":{"machine":{"cpu":3,"memory":"1Gi"}}}`, "1 clusters, 1 machines of control planes, 1 machines, 8 CPUs, 32Gi memory, 0 disk"},
		"a volume":             {`{"provider":"cloud","controlPlane":{"machine":{"cpu":3,"memory":"1Gi","disk":"50G"}}}`, "1 clusters, 1 machines of control planes, 1 machines, 8 CPUs, 32Gi memory, 50G disk"},
		"a number of bytes":    {`{"provider":"local","controlPlane":{"machine":{"cpu":1,"memory":2147483648}}}`, "1 clusters, 1 machines of control planes, 1 machines, 1 CPUs, 2Gi memory, 0 disk"},
		"too large for all":    {`{"provider":"cloud","controlPlane":{"machine":{"cpu":99,"memory":"1Gi"}}}`, "1 clusters, 1 machines of control planes, 1 machines, 0 CPUs, 0 memory, 0 disk"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if err := u.UnmarshalJSON([]byte(`{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","spec":` + c.spec + `}`)); err != nil {
				t.Fatal(err)
			}
			if got := format(quota.Usage(quota.ReadSpec(u), describe)); got != c.want {
				t.Errorf("stored: %s, want %s", got, c.want)
			}
			var spec v1alpha1.WorkloadClusterSpec
			if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			if got := format(quota.Usage(&spec, describe)); got != c.want {
				t.Errorf("typed: %s, want %s", got, c.want)
			}
		})
	}
}

// TestReadSpecOfAnything reads what was stored around the schema: nothing takes long, and nothing is counted that is no
// number.
func TestReadSpecOfAnything(t *testing.T) {
	for _, spec := range []string{
		`{"provider":"local","controlPlane":{"machine":{"cpu":1,"memory":"1e2000000000"}}}`, `{"provider":"local","controlPlane":{"machine":{"cpu":"x","memory":["a"]}}}`,
		`{"provider":7,"controlPlane":"x","workers":{"a":1}}`, `{"workers":["a",{"replicas":-5},{"replicas":9223372036854775807}]}`, `{"controlPlane":{"replicas":"3"}}`, `"x"`, `{}`,
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(`{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","spec":` + spec + `}`)); err != nil {
			t.Fatal(err)
		}
		for name, q := range quota.Usage(quota.ReadSpec(u), describe) {
			if q.Sign() < 0 || q.Value() > 10 {
				t.Errorf("%s: %s of %s", spec, &q, name)
			}
		}
	}
}

func TestForTenant(t *testing.T) {
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	q := quota.ForTenant(o)
	if got, want := format(q.Spec.Hard), "20 clusters, 100 machines"; got != want || q.Namespace != "acme" || q.Name != "polder-tenant" {
		t.Errorf("%s in %s/%s, want %s", got, q.Namespace, q.Name, want)
	}
	if quota.LimitsSizes(q) {
		t.Error("it limits sizes")
	}
	o.Spec.Namespace = "n"
	o.Spec.Quota = v1alpha1.TenantQuota{Clusters: ptr.To[int32](0), Machines: ptr.To[int32](300), ControlPlanes: ptr.To[int32](9), CPU: ptr.To[int32](7),
		Memory: ptr.To(resource.MustParse("5Gi")), Disk: ptr.To(resource.MustParse("1T"))}
	q = quota.ForTenant(o)
	if got, want := format(q.Spec.Hard), "0 clusters, 9 machines of control planes, 300 machines, 7 CPUs, 5Gi memory, 1T disk"; got != want || q.Namespace != "n" {
		t.Errorf("%s in %s, want %s", got, q.Namespace, want)
	}
	// Machines while they are replaced, and Secrets for all of them.
	if machines, secrets := q.Spec.Hard[quota.Machines], q.Spec.Hard["count/secrets"]; machines.Value() != 600 || secrets.Value() < 5*300 || !quota.LimitsSizes(q) {
		t.Errorf("%s machines, %s Secrets", &machines, &secrets)
	}
}

func TestExceeded(t *testing.T) {
	q := &corev1.ResourceQuota{}
	list := func(clusters, cpus, memory string) corev1.ResourceList {
		return corev1.ResourceList{counted.Clusters: resource.MustParse(clusters), counted.CPU: resource.MustParse(cpus), counted.Memory: resource.MustParse(memory),
			counted.Machines: resource.MustParse("99")}
	}
	q.Spec.Hard = list("2", "10", "8Gi")
	delete(q.Spec.Hard, counted.Machines)
	for name, c := range map[string]struct {
		others, was, want corev1.ResourceList
		exceeded          []string
	}{
		"what fits":        {list("1", "7", "1Gi"), nil, list("1", "3", "7Gi"), nil},
		"one cluster":      {list("2", "0", "0"), nil, list("1", "1", "1Gi"), []string{"2 of 2 clusters are used, and this asks for 1 more"}},
		"two of them":      {list("1", "7", "9Gi"), nil, list("1", "4", "1Gi"), []string{"7 of 10 CPUs are used, and this asks for 4 more", "9Gi of 8Gi memory are used, and this asks for 1Gi more"}},
		"more than it had": {list("1", "5", "0"), list("1", "3", "0"), list("1", "6", "0"), []string{"8 of 10 CPUs are used, and this asks for 3 more"}},
		"less":             {list("5", "50", "90Gi"), list("1", "3", "2Gi"), list("1", "2", "2Gi"), nil},
	} {
		if d := cmp.Diff(c.exceeded, quota.Exceeded(q, c.others, c.was, c.want)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestReservations lets requests in at the same time: none sees less than what the others were let in with. A second try
// of the same request counts once, and so does what is stored.
func TestReservations(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := &quota.Reservations{Clock: now}
	stored := map[string]quota.Stored{}
	cpus := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{counted.CPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	check := func(what, name string, n int64, wantUsed int64, want bool) {
		t.Helper()
		used, ok := int64(0), false
		err := r.Reserve(t.Context(), "ns", name, quota.Stored{Usage: cpus(n), Generation: stored[name].Generation},
			func(context.Context) (map[string]quota.Stored, error) { return stored, nil },
			func(others corev1.ResourceList) bool {
				q := others[counted.CPU]
				used = q.Value()
				ok = used+n <= 10
				return ok
			})
		if err != nil || used != wantUsed || ok != want {
			t.Errorf("%s: %d are used, %t, %v", what, used, ok, err)
		}
	}
	check("the first", "a", 6, 0, true)
	check("its second try", "a", 6, 0, true)
	check("one that does not fit", "b", 6, 6, false)
	check("one that does", "c", 4, 6, true)
	stored["a"] = quota.Stored{Usage: cpus(6), Generation: 1}
	check("the first is stored", "d", 1, 10, false)
	check("it grows, and does not fit", "a", 7, 4, false)
	stored["c"] = quota.Stored{Usage: cpus(4), Generation: 1}
	stored["a"] = quota.Stored{Usage: cpus(2), Generation: 2}
	check("it has shrunk", "d", 1, 6, true)
	check("another grows", "c", 7, 3, true)
	stored["c"] = quota.Stored{Usage: cpus(1), Generation: 2} // somebody else's change came first, and that one was refused
	check("and was overtaken", "e", 5, 4, true)
	r.Observe("ns", "e", 1)
	check("one was made, and is deleted", "f", 6, 4, true)
	r.Observe("ns", "f", 1)
	check("another grows again", "c", 7, 3, true)
	r.Observe("ns", "c", 2) // a deletion that fails
	check("and is deleted in vain", "h", 1, 10, false)
	delete(stored, "c")
	check("and is gone", "h", 7, 3, true)
	stored["c"] = quota.Stored{Usage: cpus(1), Generation: 1}
	now.SetTime(time.Unix(3600, 0))
	check("requests that never ended", "g", 7, 3, true)
	err := r.Reserve(t.Context(), "ns", "g", quota.Stored{}, func(context.Context) (map[string]quota.Stored, error) { return nil, errors.New("x") }, nil)
	if err == nil {
		t.Error("it counts what it cannot read")
	}
}
