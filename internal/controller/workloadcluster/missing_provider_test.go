package workloadcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func newWorkloadCluster(provider, name string) *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, Generation: 3}}
	o.Spec.Provider = provider
	o.Status.Phase = v1alpha1.PhaseReady
	o.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: metav1.Time{Time: noon}},
		{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Time{Time: noon}},
	}
	return o
}

// never stands for a heartbeat that was never sent.
const never = -time.Second

func newProvider(name string, made, last time.Duration) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: noon.Add(-made)}}}
	if last != never {
		p.Status.LastSeenTime = &metav1.Time{Time: noon.Add(-last)}
	}
	return p
}

func TestMissingProviderMonitor(t *testing.T) {
	const since = "provider p has not been seen since 2026-01-02 11:59:00 UTC, so nobody acts on this cluster"
	for name, c := range map[string]struct {
		provider *v1alpha1.Provider
		passed   time.Duration // since the monitor began
		said     time.Duration // when, since then, the last heartbeat was sent; 0: never
		want     string
	}{
		"its provider is there":               {newProvider("p", 24*time.Hour, time.Minute), time.Minute, 0, ""},
		"its provider is late, which happens": {newProvider("p", 24*time.Hour, time.Minute), heartbeatTimeout, 0, ""},
		"its provider is away":                {newProvider("p", 24*time.Hour, time.Minute), heartbeatTimeout + time.Second, 0, since},
		"its provider says that it is there":  {newProvider("p", 24*time.Hour, time.Minute), heartbeatTimeout + time.Hour, time.Hour, ""},
		"its provider said so, too long ago": {newProvider("p", 24*time.Hour, time.Minute), heartbeatTimeout + time.Hour + time.Second, time.Hour,
			"provider p has not been seen since 2026-01-02 12:59:00 UTC, so nobody acts on this cluster"},
		"its provider's clock is behind": {newProvider("p", 24*time.Hour, 9*time.Hour), 5 * time.Minute, 5 * time.Minute, ""},
		"its provider's clock is ahead": {newProvider("p", 24*time.Hour, -9*time.Hour), heartbeatTimeout + time.Second, 0,
			"provider p has not been seen since 2026-01-02 21:00:00 UTC, so nobody acts on this cluster"},
		"its provider is away when the plane starts":     {newProvider("p", 24*time.Hour, 9*time.Hour), heartbeatTimeout, 0, ""},
		"its provider has just come":                     {newProvider("p", time.Second, never), 0, 0, ""},
		"its provider came, and never said that it runs": {newProvider("p", time.Minute, never), heartbeatTimeout + time.Second, 0, since},
		"its provider is not installed":                  {newProvider("other", 0, 0), 0, 0, "provider p is not installed, so nobody acts on this cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			all := clients(t, c.provider, newWorkloadCluster("p", "demo")).WithStatusSubresource(c.provider).Build()
			writes := 0
			counting := interceptor.NewClient(all,
				interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
					opts ...client.SubResourcePatchOption) error {
					writes++
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				}})
			clock := clocktesting.NewFakePassiveClock(noon)
			u := &MissingProviderMonitor{Client: counting, Clock: clock}
			once := func(at time.Duration) {
				t.Helper()
				clock.SetTime(noon.Add(at))
				if err := u.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			once(0)
			if c.said > 0 {
				writes = 0 // the report from before that does not matter
				c.provider.Status.LastSeenTime.Time = c.provider.Status.LastSeenTime.Add(c.said)
				if err := all.Status().Update(t.Context(), c.provider); err != nil {
					t.Fatal(err)
				}
				once(c.said)
			}
			once(c.passed)
			once(c.passed) // nothing is written twice
			o := &v1alpha1.WorkloadCluster{}
			if err := all.Get(t.Context(), client.ObjectKey{Namespace: "tenant", Name: "demo"}, o); err != nil {
				t.Fatal(err)
			}
			st := o.Status
			if c.want == "" {
				if st.Phase != v1alpha1.PhaseReady || writes != 0 {
					t.Errorf("%d writes, %+v", writes, st)
				}
				return
			}
			if writes != 1 || st.Phase != v1alpha1.PhaseStalled || st.Message != c.want || st.Actor != v1alpha1.PlatformOperator ||
				st.NextStep != "start provider p; see: polder providers" {
				t.Errorf("%d writes, %+v", writes, st)
			}
			s := &scope{object: o}
			for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAccepted} {
				if got := s.condition(name); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonProviderMissing || got.Message != c.want ||
					got.ObservedGeneration != 3 {
					t.Errorf("%+v", got)
				}
			}
			if s.condition(v1alpha1.ConditionStalled).Status != metav1.ConditionTrue || s.condition(v1alpha1.ConditionReconciling).Type != "" {
				t.Errorf("%+v", st.Conditions)
			}
		})
	}
}

// An error for one cluster does not keep the others from being reported.
func TestMissingProviderMonitorGoesOn(t *testing.T) {
	gone := apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("workloadclusters").GroupResource(), "a")
	for name, c := range map[string]struct{ err, want error }{"a failure": {errBroken, errBroken}, "it has just gone": {gone, nil}} {
		t.Run(name, func(t *testing.T) {
			told := map[string]bool{}
			all := interceptor.NewClient(clients(t, newWorkloadCluster("p", "a"), newWorkloadCluster("p", "b"), newWorkloadCluster("p", "c")).Build(), interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					if o.GetName() == "a" {
						return c.err
					}
					told[o.GetName()] = true
					return nil
				},
			})
			if err := (&MissingProviderMonitor{Client: all, Clock: clocktesting.NewFakePassiveClock(noon)}).Once(t.Context()); !errors.Is(err, c.want) ||
				(err == nil) != (c.want == nil) {
				t.Error(err)
			}
			if !told["b"] || !told["c"] {
				t.Errorf("%v", told)
			}
		})
	}
}

// A cluster that is deleted while its provider is missing does not look ready while its machines go.
func TestMissingProviderMonitorDeletes(t *testing.T) {
	for name, c := range map[string]struct {
		fails error
		text  string
		actor v1alpha1.Actor
	}{
		"it goes":           {nil, "the cluster and its machines are being deleted", v1alpha1.Nobody},
		"it cannot be done": {errBroken, "the cluster cannot be deleted: broken", v1alpha1.PlatformOperator},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorkloadCluster("p", "demo")
			o.UID, o.Finalizers, o.DeletionTimestamp = "uid", []string{v1alpha1.WorkloadClusterFinalizer}, &metav1.Time{Time: noon}
			k := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: "cluster", Finalizers: []string{"example.org/machines"}}}
			k.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind("WorkloadCluster"))}
			writes, said := 0, events.NewFakeRecorder(10)
			all := interceptor.NewClient(clients(t, o, k).Build(), interceptor.Funcs{
				Delete: func(ctx context.Context, plane client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if c.fails != nil {
						return c.fails
					}
					return plane.Delete(ctx, o, opts...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					writes++
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			u := &MissingProviderMonitor{Client: all, Live: all, Events: said, Clock: clocktesting.NewFakePassiveClock(noon)}
			for range 2 { // nothing is written twice
				if err := u.Once(t.Context()); !errors.Is(err, c.fails) {
					t.Fatal(err)
				}
			}
			got := &v1alpha1.WorkloadCluster{}
			if err := all.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
				t.Fatal(err)
			}
			ready := (&scope{object: got}).condition(v1alpha1.ConditionReady)
			if st := got.Status; writes != 1 || st.Phase != v1alpha1.PhaseDeleting || st.Message != c.text || st.Actor != c.actor ||
				ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonDeleting {
				t.Errorf("%d writes, %+v", writes, st)
			}
			if len(said.Events) != 1 {
				t.Errorf("%d events", len(said.Events))
			}
		})
	}
}
