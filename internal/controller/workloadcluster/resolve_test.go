package workloadcluster

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// A release that was withdrawn is not left by itself: going back may be impossible.
func TestKeepRunning(t *testing.T) {
	for name, c := range map[string]struct {
		running, wanted, pin string
		want                 string
		kubernetes           string // of the wanted release; "" if it is the same
	}{
		"nothing runs":                         {"", v1, "", v1, ""},
		"a newer one":                          {v1, v2, "", v2, ""},
		"an older one":                         {v2, v1, "", v2, ""},
		"an older one, by number":              {"local-scs-1-36-v10", "local-scs-1-36-v9", "", "local-scs-1-36-v10", ""},
		"an older one that is pinned":          {v2, v1, "v1", v1, ""},
		"an older one of another minor":        {"local-scs-1-36-v9", "local-scs-1-37-v1", "", "local-scs-1-37-v1", ""},
		"an older one of another stack":        {"local-scs-1-36-v9", "local-other-1-36-v1", "", "local-other-1-36-v1", ""},
		"one of another channel":               {"local-scs-1-36-v9-rc-1", v1, "", v1, ""},
		"an older one of custom channel":       {"local-scs-1-36-v0-rc-2", "local-scs-1-36-v0-rc-1", "", "local-scs-1-36-v0-rc-2", ""},
		"a newer one of an older Kubernetes":   {v1, v2, "", v1, "v1.36.2"},
		"a newer one of a newer Kubernetes":    {v1, v2, "", v2, "v1.36.4"},
		"a pin of an older Kubernetes":         {v1, v2, "v2", v2, "v1.36.2"},
		"an older Kubernetes of another minor": {v1, "local-scs-1-35-v1", "", "local-scs-1-35-v1", "v1.35.2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.running, s.object.Spec.Stack.Version = nil, c.pin
			if c.running != "" {
				s.running = ptr.To(newEntry(t, c.running, "v1.36.3"))
			}
			if got := s.keepRunning(newEntry(t, c.wanted, cmp.Or(c.kubernetes, "v1.36.3"))).Tag(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A cluster gets the class of a new release once all of its add-ons are applied, and not before.
func TestChooseTarget(t *testing.T) {
	prepared := func(s *scope) {
		key := s.wanted.Key().String()
		s.addon.Status.Release, s.addon.Status.Target, s.addon.Status.TargetDigest = key, key, s.wanted.Object.Status.Digest
	}
	for name, c := range map[string]struct {
		change func(*scope)
		held   bool
	}{
		"the add-ons are those of the old release":   {func(*scope) {}, true},
		"the add-ons are on their way":               {func(s *scope) { s.addon.Status.Target = s.wanted.Key().String() }, true},
		"the add-ons are applied":                    {prepared, false},
		"they are on their way back":                 {func(s *scope) { prepared(s); s.addon.Status.Target = s.running.Key().String() }, true},
		"they are of what the release was before":    {func(s *scope) { prepared(s); s.addon.Status.TargetDigest = "sha256:other" }, true},
		"they are of a release of another namespace": {func(s *scope) { prepared(s); s.addon.Status.Release = "other/" + v2 }, true},
		"there are none":                             {func(s *scope) { s.addon = nil }, false},
		"none ever came so far":                      {func(s *scope) { s.addon.Status.Release = "" }, false},
		"nothing runs that is known":                 {func(s *scope) { s.running = nil }, false},
		"it runs already":                            {func(s *scope) { s.running = &s.wanted }, false},
		"the same name in another namespace is not it": {func(s *scope) { s.running = ptr.To(newEntry(t, v2, "v1.36.3")); s.running.Object.Namespace = "other" },
			true},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			s.wanted, s.target = newEntry(t, v2, "v1.36.4"), lineage.CatalogueEntry{}
			c.change(s)
			s.chooseTarget()
			if s.held != c.held || s.isPreparingAddons() != c.held {
				t.Errorf("held: %t, preparing: %t, want %t", s.held, s.isPreparingAddons(), c.held)
			}
			want := s.wanted.Key()
			if c.held {
				want = s.running.Key()
			}
			if s.target.Key() != want {
				t.Errorf("%s, want %s", s.target.Key(), want)
			}
		})
	}
}

// Whatever the spec asks for, a cluster that runs goes on.
func TestReportUnresolved(t *testing.T) {
	a := advice{"there is no such release", v1alpha1.Customer, "choose another"}
	s := healthyScope(t)
	s.wanted, s.target = lineage.CatalogueEntry{}, lineage.CatalogueEntry{}
	if err := s.reportUnresolved(v1alpha1.ReasonReleaseMissing, a); err != nil || !s.held || s.target.Tag() != v1 || s.isPreparingAddons() {
		t.Errorf("%v, %t, %s", err, s.held, s.target.Tag())
	}
	if c := s.condition(v1alpha1.ConditionResolved); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonReleaseMissing || s.advice[c.Type] != a {
		t.Errorf("%+v, %+v", c, s.advice)
	}
	s = healthyScope(t)
	s.running = nil
	if err := s.reportUnresolved(v1alpha1.ReasonReleaseMissing, a); !reconcile.IsWait(err) || s.held {
		t.Errorf("%v, %t", err, s.held)
	}
}

// stackWithReleases makes a stack with two releases, of which the second has a newer patch of Kubernetes.
func stackWithReleases(t *testing.T) []client.Object {
	t.Helper()
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "scs"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.36", Channel: csv1.ChannelStable}
	return []client.Object{s, newEntry(t, v1, "v1.36.3").Object, newEntry(t, v2, "v1.36.4").Object}
}

func TestResolveRelease(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*scope)
		have    func([]client.Object) []client.Object
		target  string
		wanted  string
		reason  string
		message string
		waits   bool
	}{
		"a new cluster": {
			change: func(s *scope) { s.cluster, s.addon = nil, nil }, wanted: v2, target: v2, message: "the cluster is to be of release " + v2,
		},
		"an update, add-ons first": {change: func(*scope) {}, wanted: v2, target: v1, message: "the cluster is to be of release " + v2},
		"a pin": {change: func(s *scope) { s.object.Spec.Stack.Version = "v1" }, wanted: v1, target: v1,
			message: "the cluster is to be of release " + v1},
		"the newest was taken back": {
			change: func(s *scope) { s.cluster.Spec.Topology.ClassRef.Name, s.cluster.Spec.Topology.Version = v2, "v1.36.4" },
			have: func(all []client.Object) []client.Object {
				all[2].(*csv1.ClusterStackRelease).Status.Ready = ptr.To(false)
				return all
			},
			wanted: v2, target: v2, message: "the cluster is to be of release " + v2,
		},
		"the newest would lower Kubernetes": {
			change: func(*scope) {},
			have: func(all []client.Object) []client.Object {
				all[2].(*csv1.ClusterStackRelease).Status.KubernetesVersion = "v1.36.2"
				return all
			},
			wanted: v1, target: v1, message: "the cluster is to be of release " + v1,
		},
		"a pin that would lower Kubernetes": {
			change: func(s *scope) {
				s.cluster.Spec.Topology.ClassRef.Name, s.cluster.Spec.Topology.Version, s.object.Spec.Stack.Version = v2, "v1.36.4", "v1"
			},
			wanted: v2, target: v2, reason: v1alpha1.ReasonVersionLower,
			message: "release local-scs-1-36-v1 cannot be reached: Kubernetes is never lowered, and the cluster has v1.36.4 already",
		},
		"no stack, and it runs": {
			change: func(s *scope) { s.object.Spec.Stack.Name = "other" }, wanted: v1, target: v1, reason: v1alpha1.ReasonStackMissing,
			message: `there is no stack "other" for provider local that serves namespace tenant; there is scs of local (1.36)`,
		},
		"no stack, and nothing runs": {
			change: func(s *scope) { s.object.Spec.Stack.Name, s.cluster = "other", nil }, reason: v1alpha1.ReasonStackMissing, waits: true,
			message: `there is no stack "other" for provider local that serves namespace tenant; there is scs of local (1.36)`,
		},
		"its stack has left the catalogue": {
			change: func(*scope) {}, have: func(all []client.Object) []client.Object { return all[1:] }, wanted: v1, target: v1, reason: v1alpha1.ReasonStackMissing,
			message: `there is no stack "scs" for provider local that serves namespace tenant, and no other`,
		},
		"the class that runs is of somebody else": {
			change: func(s *scope) { s.cluster.Spec.Topology.ClassRef.Name = "quick-start" }, wanted: v2, target: v2, message: "the cluster is to be of release " + v2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, all := healthyScope(t), stackWithReleases(t)
			s.running, s.wanted, s.target, s.catalogue = nil, lineage.CatalogueEntry{}, lineage.CatalogueEntry{}, nil
			c.change(s)
			if c.have != nil {
				all = c.have(all)
			}
			err := newReconciler(t, all...).resolveRelease(t.Context(), s)
			got := s.condition(v1alpha1.ConditionResolved)
			if (err != nil) != c.waits || err != nil && !reconcile.IsWait(err) || got.Message != c.message || c.reason != "" && got.Reason != c.reason ||
				(got.Status == metav1.ConditionTrue) != (c.reason == "") {
				t.Errorf("%v, %+v", err, got)
			}
			tag := func(r lineage.CatalogueEntry) string {
				if r.Object == nil {
					return ""
				}
				return r.Tag()
			}
			if tag(s.wanted) != c.wanted || tag(s.target) != c.target {
				t.Errorf("wanted %s, target %s", tag(s.wanted), tag(s.target))
			}
			if c.reason == "" && s.object.Status.Versions.WantedRelease != c.wanted {
				t.Errorf("%+v", s.object.Status.Versions)
			}
		})
	}
}

func TestOwnsCluster(t *testing.T) {
	marked := func(c *clusterv1.Cluster) {
		c.OwnerReferences = nil
		c.Labels, c.Annotations = map[string]string{v1alpha1.WorkloadClusterLabel: "demo"}, map[string]string{v1alpha1.AppliedAnnotation: "sha256:x"}
	}
	for name, c := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"it has its owner":                      {func(*clusterv1.Cluster) {}, true},
		"it has lost its owner, and has marks":  {marked, true},
		"it has no owner, and no marks":         {func(c *clusterv1.Cluster) { c.OwnerReferences = nil }, false},
		"it has no owner, and marks of another": {func(c *clusterv1.Cluster) { marked(c); c.Labels[v1alpha1.WorkloadClusterLabel] = "other" }, false},
		"somebody wrote the label alone":        {func(c *clusterv1.Cluster) { marked(c); c.Annotations = nil }, false},
		"it has marks, and another owner": {func(c *clusterv1.Cluster) {
			own := c.OwnerReferences
			marked(c)
			c.OwnerReferences = own
			c.OwnerReferences[0].UID = "other"
		}, false},
		"its owner was deleted and made anew": {func(c *clusterv1.Cluster) { c.OwnerReferences[0].UID = "before" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyScope(t)
			c.change(s.cluster)
			if got := s.ownsCluster(); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
			if err := newReconciler(t).checkOwner(t.Context(), s); (err == nil) != c.want || err != nil &&
				(!reconcile.IsWait(err) || !strings.Contains(s.condition(v1alpha1.ConditionApplied).Message, "did not make")) {
				t.Errorf("%v", err)
			}
		})
	}
}
