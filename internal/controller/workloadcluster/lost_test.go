package workloadcluster

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// A Cluster that was there and is gone is not made anew before a person says so, for this very loss.
func TestLostCluster(t *testing.T) {
	for name, c := range map[string]struct {
		was      string // the Cluster that is written down
		recreate string // what the annotation says
		moving   string // the Cluster that is to come from another plane
		there    bool   // the API server has it, but the cache does not
		lost     bool
	}{
		"there never was one":          {},
		"it is gone":                   {was: "u", lost: true},
		"a person wants another":       {was: "u", recreate: "u"},
		"that was about an older loss": {was: "u", recreate: "t", lost: true},
		"the cache is late":            {was: "u", there: true},
		"it went while it was paused":  {was: "u", moving: "u", lost: true},
		"it has not come yet":          {moving: "u", lost: true},
		"it will never come":           {moving: "u", recreate: "u"},
		"it has come":                  {moving: "u", there: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.object.Status.ClusterUID = c.was
			s.object.Annotations = map[string]string{v1alpha1.RecreateAnnotation: c.recreate, v1alpha1.MovingAnnotation: c.moving}
			r := newReconciler(t)
			if c.there {
				r = newReconciler(t, s.cluster)
			}
			s.cluster = nil
			err := r.checkOwner(t.Context(), s)
			a, stalled := s.advice[v1alpha1.ConditionApplied]
			if stalled != c.lost || (err != nil) != c.lost {
				t.Fatalf("%+v, %v", a, err)
			}
			switch {
			case c.lost:
				if strings.Contains(a.text, "UID u") != (c.was != "") || !strings.Contains(a.next, "polder recreate") || a.actor != v1alpha1.PlatformOperator {
					t.Errorf("%+v", a)
				}
				if moved := strings.Contains(a.next, "move"); moved != (c.moving != "") {
					t.Errorf("%+v", a)
				}
				if s.object.Status.ClusterUID != c.was || s.object.Status.FirstReadyTime == nil {
					t.Error("what was known of it is forgotten")
				}
			case c.there:
				if s.cluster == nil || s.object.Status.FirstReadyTime == nil {
					t.Error("it is taken for lost")
				}
			case s.object.Status.FirstReadyTime != nil || s.object.Status.ClusterUID != "":
				t.Error("what was known of the one before is kept")
			}
		})
	}
}
