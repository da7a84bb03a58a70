package workloadcluster

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/provider"
)

// The first apply takes over no Cluster that the cache does not have yet.
func TestFirstApply(t *testing.T) {
	unread := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errBroken
	}}
	for name, c := range map[string]struct {
		change func(*clusterv1.Cluster) // nil if there is none
		broken bool                     // it cannot be read
		reason string                   // why it waits
		want   func(error) bool
	}{
		"there is none":                 {want: func(err error) bool { return err == nil }},
		"there is one of somebody else": {change: func(c *clusterv1.Cluster) { c.OwnerReferences = nil }, reason: v1alpha1.ReasonNotOurs, want: reconcile.IsWait},
		"there is ours":                 {change: func(*clusterv1.Cluster) {}, want: apierrors.IsConflict},
		"there is ours, and it goes": {change: func(c *clusterv1.Cluster) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
		}, reason: v1alpha1.ReasonDeleting, want: reconcile.IsWait},
		"nobody knows": {broken: true, want: func(err error) bool { return errors.Is(err, errBroken) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := healthyScope(t), newReconciler(t)
			var have []client.Object
			if c.change != nil {
				c.change(s.cluster)
				have = append(have, s.cluster)
			}
			live := clients(t, have...).WithReturnManagedFields().Build()
			r.Client, r.Live = live, live
			if c.broken {
				r.Live = interceptor.NewClient(live, unread)
			}
			s.cluster, s.running, s.contractRelease = nil, nil, providerRelease() // the cache has nothing
			err := r.applyCluster(t.Context(), s)
			if !c.want(err) {
				t.Errorf("%v", err)
			}
			if got := s.condition(v1alpha1.ConditionApplied); c.reason != "" && (got.Reason != c.reason || got.Status != metav1.ConditionFalse) {
				t.Errorf("%+v", got)
			}
			var l clusterv1.ClusterList
			if err := live.List(t.Context(), &l); err != nil {
				t.Fatal(err)
			}
			if c.change == nil && !c.broken {
				if len(l.Items) != 1 || !metav1.IsControlledBy(&l.Items[0], s.object) {
					t.Errorf("%+v", l.Items)
				}
				return
			}
			if len(l.Items) != len(have) {
				t.Fatalf("%+v", l.Items)
			}
			for i := range l.Items {
				if d := cmp.Diff(have[i].(*clusterv1.Cluster).Spec, l.Items[i].Spec); d != "" || l.Items[i].Annotations != nil {
					t.Error(d, l.Items[i].Annotations)
				}
			}
		})
	}
}

// A parameter of the customer's must not win over what the provider sets, and must not be dropped in silence.
func TestParametersThatTheProviderSets(t *testing.T) {
	s := healthyScope(t)
	s.contractRelease, s.object.Spec.Parameters = providerRelease(), map[string]provider.JSON{"certSANs": {Raw: []byte(`["theirs"]`)}}
	s.answer.Topology.Variables = provider.Values{"certSANs": []any{"mine"}}
	r := newReconciler(t)
	if err := r.applyCluster(t.Context(), s); !reconcile.IsWait(err) {
		t.Errorf("error %v", err)
	}
	want := advice{"spec.parameters has parameters that provider local sets by itself: certSANs", v1alpha1.Customer, "take out of spec.parameters: certSANs"}
	if got := s.advice[v1alpha1.ConditionAccepted]; got != want || s.condition(v1alpha1.ConditionAccepted).Reason != v1alpha1.ReasonProviderRefused {
		t.Errorf("%+v %+v", got, s.condition(v1alpha1.ConditionAccepted))
	}
	if r.summarize(s); s.object.Status.Phase != v1alpha1.PhaseStalled || s.object.Status.Actor != v1alpha1.Customer {
		t.Errorf("%s %s: %s", s.object.Status.Phase, s.object.Status.Actor, s.object.Status.Message)
	}
}

// That there is no room is not the customer's to mend.
func TestProviderWithoutRoom(t *testing.T) {
	at := field.NewPath("spec", "provider")
	for name, c := range map[string]struct {
		errs field.ErrorList
		want advice
	}{
		"no room": {field.ErrorList{field.Forbidden(at, "1 MiB is left")}, advice{
			"provider local has no room for the cluster: 1 MiB is left", v1alpha1.PlatformOperator, "make room; it is asked again by itself",
		}},
		"something else": {field.ErrorList{field.Forbidden(at, "1 MiB is left"), field.Required(at, "x")}, advice{
			"provider local does not take the spec: [spec.provider: Forbidden: 1 MiB is left, spec.provider: Required value: x]", v1alpha1.Customer, "correct the spec",
		}},
	} {
		s := healthyScope(t)
		if err := s.reportRefusal(c.errs); !reconcile.IsWait(err) {
			t.Errorf("%s: error %v", name, err)
		}
		if d := cmp.Diff(c.want, s.advice[v1alpha1.ConditionAccepted], cmp.AllowUnexported(advice{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
