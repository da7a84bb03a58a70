package workloadcluster

import (
	"maps"
	"testing"

	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// immovable is a provider whose clusters stay at their plane.
type immovable struct{ simple }

func (immovable) Describe() provider.Description {
	return provider.Description{Name: "local", Immovable: "they are here"}
}

// clusterctl is held up until a WorkloadCluster says that its Cluster is to come, and for ever if it cannot be moved.
func TestMarkMovable(t *testing.T) {
	held := map[string]string{clusterctlv1.BlockMoveAnnotation: ""}
	moving := map[string]string{v1alpha1.MovingAnnotation: "u"}
	here := map[string]string{clusterctlv1.BlockMoveAnnotation: "they are here"}
	for name, c := range map[string]struct {
		provider  provider.Provider
		paused    bool
		bySpec    bool // it is the spec that says so
		was, want map[string]string
	}{
		"a new cluster":                   {provider: simple{}, want: held},
		"it is paused":                    {provider: simple{}, paused: true, was: held, want: moving},
		"its spec pauses it":              {provider: simple{}, paused: true, bySpec: true, was: held, want: held},
		"it came from elsewhere":          {provider: simple{}, paused: true, was: map[string]string{v1alpha1.MovingAnnotation: "t"}, want: moving},
		"it goes on":                      {provider: simple{}, was: moving, want: held},
		"one that cannot be moved":        {provider: immovable{}, want: here},
		"one that cannot be moved, after": {provider: immovable{}, paused: true, was: moving, want: here},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := healthyScope(t), newReconciler(t)
			r.Provider = guarded(t, c.provider)
			s.object.Annotations, s.cluster.UID, s.cluster.Spec.Paused = maps.Clone(c.was), "u", ptr.To(c.paused)
			s.object.Spec.Paused = ptr.To(c.bySpec)
			if err := r.checkOwner(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(s.object.Annotations, c.want) {
				t.Errorf("%v, not %v", s.object.Annotations, c.want)
			}
		})
	}
}
