package clusteraddon

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

func TestClusterChanged(t *testing.T) {
	initialized := func(b *bool) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = b }
	}
	paused := func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }
	for name, c := range map[string]struct {
		was, is func(*clusterv1.Cluster)
		want    bool
	}{
		"nothing":                              {nil, nil, false},
		"its spec":                             {nil, func(c *clusterv1.Cluster) { c.Generation++ }, true},
		"its status":                           {nil, func(c *clusterv1.Cluster) { c.Status.Phase = "Provisioned" }, false},
		"its labels":                           {nil, func(c *clusterv1.Cluster) { c.Labels = map[string]string{"a": "b"} }, false},
		"another annotation":                   {nil, func(c *clusterv1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, false},
		"its control plane is initialized":     {nil, initialized(ptr.To(true)), true},
		"it is so after it was said not to be": {initialized(ptr.To(false)), initialized(ptr.To(true)), true},
		"it is said that it is not, yet":       {nil, initialized(ptr.To(false)), false},
		"it was initialized before":            {initialized(ptr.To(true)), initialized(ptr.To(true)), false},
		"it is initialized no more":            {initialized(ptr.To(true)), nil, true},
		"it is paused":                         {nil, paused, true},
		"it is paused no more":                 {paused, nil, true},
		"it was paused before":                 {paused, paused, false},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := newCluster("v1"), newCluster("v1")
			if c.was != nil {
				c.was(was)
			}
			if c.is != nil {
				c.is(is)
			}
			if got := clusterChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
	p := clusterChanged()
	if !p.Create(event.CreateEvent{Object: newCluster("v1")}) || !p.Delete(event.DeleteEvent{Object: newCluster("v1")}) {
		t.Error("clusters come and go")
	}
	if p.Update(event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: newCluster("v1")}) ||
		p.Update(event.UpdateEvent{ObjectOld: newCluster("v1"), ObjectNew: &corev1.Node{}}) {
		t.Error("what is no cluster does not count")
	}
}

func TestAddonChanged(t *testing.T) {
	told := func() *csv1.ClusterAddon {
		o := newAddon(csv1.ClusterAddonStatus{Conditions: []metav1.Condition{conditionIs("Ready", "True", "")}})
		o.OwnerReferences = []metav1.OwnerReference{ownerReferenceTo(newCluster("v1"))}
		return o
	}
	for name, c := range map[string]struct {
		change func(*csv1.ClusterAddon)
		want   bool
	}{
		"nothing":            {func(*csv1.ClusterAddon) {}, false},
		"what we wrote":      {func(o *csv1.ClusterAddon) { o.Status.Ready = ptr.To(true) }, false},
		"its status is lost": {func(o *csv1.ClusterAddon) { o.Status = csv1.ClusterAddonStatus{} }, true},
		"its owner is gone":  {func(o *csv1.ClusterAddon) { o.OwnerReferences = nil }, true},
		"its spec":           {func(o *csv1.ClusterAddon) { o.Generation++ }, true},
		"it is paused":       {func(o *csv1.ClusterAddon) { o.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, true},
		"its labels":         {func(o *csv1.ClusterAddon) { o.Labels = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			is := told()
			c.change(is)
			if got := addonChanged().Update(event.UpdateEvent{ObjectOld: told(), ObjectNew: is}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
	if p := addonChanged(); p.Create(event.CreateEvent{Object: told()}) || !p.Delete(event.DeleteEvent{Object: told()}) {
		t.Error("those we make are known, those that are deleted are not")
	}
}

func TestReleaseChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*csv1.ClusterStackRelease)
		want   bool
	}{
		"nothing":        {func(*csv1.ClusterStackRelease) {}, false},
		"its conditions": {func(r *csv1.ClusterStackRelease) { r.Status.Conditions = []metav1.Condition{{}} }, false},
		"its content":    {func(r *csv1.ClusterStackRelease) { r.Status.Digest = "sha256:other" }, true},
		"its readiness":  {func(r *csv1.ClusterStackRelease) { r.Status.Ready = ptr.To(true) }, true},
		"its objects":    {func(r *csv1.ClusterStackRelease) { r.Status.Resources = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := newRelease("v1")
			c.change(is)
			if got := releaseChanged().Update(event.UpdateEvent{ObjectOld: newRelease("v1"), ObjectNew: is}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
	p := releaseChanged()
	if !p.Create(event.CreateEvent{Object: newRelease("v1")}) {
		t.Error("a release that comes is not heard of")
	}
	if p.Update(event.UpdateEvent{ObjectOld: newRelease("v1"), ObjectNew: &corev1.Node{}}) ||
		p.Update(event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: newRelease("v1")}) {
		t.Error("what is no release does not count")
	}
}

func TestRequests(t *testing.T) {
	if got := clusterOfAddon(t.Context(), newAddon(csv1.ClusterAddonStatus{})); len(got) != 1 || got[0].String() != "a/demo" {
		t.Errorf("%v", got)
	}
	foreign := newAddon(csv1.ClusterAddonStatus{})
	foreign.Name = "demo"
	if got := clusterOfAddon(t.Context(), foreign); got != nil {
		t.Errorf("%v", got)
	}
	second := newCluster("v1")
	second.Name = "other"
	r := &Reconciler{Client: newClient(t, second, newCluster("v1"))}
	var got []string
	for _, q := range r.clustersOfRelease(t.Context(), newRelease("v1")) {
		got = append(got, q.String())
	}
	if strings.Join(got, " ") != "a/demo a/other" || r.clustersOfRelease(t.Context(), newRelease("v2")) != nil {
		t.Errorf("%v", got)
	}
}

// Whether a stack serves a cluster depends on the stack and on the labels of the cluster's namespace.
func TestRequestsOfThoseWhoAreServed(t *testing.T) {
	other := newCluster("v2")
	other.Namespace = "b"
	of, orphan := newRelease("v1"), newRelease("v2")
	stack := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "ferrol", UID: "stack"}}
	of.OwnerReferences = []metav1.OwnerReference{{UID: stack.UID, Controller: ptr.To(true)}}
	r := alone()
	r.Client = newClient(t, newCluster("v1"), other, of, orphan)
	namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, c := range map[string]struct {
		got  []ctrlreconcile.Request
		want string
	}{
		"of a stack":       {r.clustersOfStack(t.Context(), stack), "a/demo"},
		"of another stack": {r.clustersOfStack(t.Context(), &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "s", UID: "other"}}), ""},
		"of a namespace":   {r.clustersOfNamespace(t.Context(), namespace("b")), "b/demo"},
		"of an empty one":  {r.clustersOfNamespace(t.Context(), namespace("s")), ""},
	} {
		var got []string
		for _, req := range c.got {
			got = append(got, req.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	p := onlyUpdates(predicate.GenerationChangedPredicate{})
	if p.Create(event.CreateEvent{Object: stack}) || p.Delete(event.DeleteEvent{Object: stack}) {
		t.Error("it is heard of what comes and goes")
	}
	changed := stack.DeepCopy()
	changed.Generation++
	if p.Update(event.UpdateEvent{ObjectOld: stack, ObjectNew: stack}) || !p.Update(event.UpdateEvent{ObjectOld: stack, ObjectNew: changed}) {
		t.Error("not only changes are heard of")
	}
}

func TestAddVariableDefaults(t *testing.T) {
	variable := func(name string, value any) any { return map[string]any{"name": name, "value": value} }
	for name, c := range map[string]struct {
		have, defaults, want []any
	}{
		"nothing":           {nil, nil, []any{}},
		"what is set stays": {[]any{variable("size", "large")}, []any{variable("size", "small")}, []any{variable("size", "large")}},
		"what is not set is added": {[]any{variable("size", "large")}, []any{variable("zone", "a"), variable("size", "small")}, []any{
			variable("size", "large"), variable("zone", "a"),
		}},
		"nothing is set":                {nil, []any{variable("zone", "a")}, []any{variable("zone", "a")}},
		"what is set to nothing is set": {[]any{variable("zone", "")}, []any{variable("zone", "a")}, []any{variable("zone", "")}},
		"numbers are as objects have them": {nil, []any{variable("count", 3), variable("share", 0.5), variable("deep", map[string]any{"a": []int{1}})}, []any{
			variable("count", int64(3)), variable("share", 0.5), variable("deep", map[string]any{"a": []any{int64(1)}}),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			topology := map[string]any{}
			if c.have != nil {
				topology["variables"] = c.have
			}
			cluster := map[string]any{"spec": map[string]any{"topology": topology}}
			if err := addVariableDefaults(cluster, c.defaults); err != nil {
				t.Fatal(err)
			}
			got := cluster["spec"].(map[string]any)["topology"].(map[string]any)["variables"]
			if list, _ := got.([]any); len(list) == 0 && len(c.want) == 0 {
				return
			}
			if d := cmp.Diff(any(c.want), got); d != "" {
				t.Error(d)
			}
		})
	}
	bad := map[string]any{"spec": map[string]any{"topology": map[string]any{"variables": "x"}}}
	if err := addVariableDefaults(bad, nil); err == nil {
		t.Error("variables that are none were taken")
	}
}

// A cluster of a release has a ClusterAddon with the right references, and no other cluster gets one.
func TestEnsureAddon(t *testing.T) {
	mine := func(change func(*csv1.ClusterAddon)) *csv1.ClusterAddon {
		o := newAddon(csv1.ClusterAddonStatus{})
		o.OwnerReferences, o.Spec.ClusterRef = []metav1.OwnerReference{ownerReferenceTo(newCluster("v1"))}, newClusterRef(newCluster("v1"))
		if change != nil {
			change(o)
		}
		return o
	}
	deleted := newCluster("v1")
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}, []string{"x/y"}
	for name, c := range map[string]struct {
		have    *csv1.ClusterAddon
		cluster *clusterv1.Cluster // v1 if nil
		alone   bool               // the cluster is of no release
		want    *csv1.ClusterAddon // nil if there is none
		done    bool
	}{
		"it is made":                           {want: mine(nil)},
		"it is there":                          {have: mine(nil), want: mine(nil)},
		"its owner comes back":                 {have: mine(func(o *csv1.ClusterAddon) { o.OwnerReferences = nil }), want: mine(nil)},
		"its cluster comes back":               {have: mine(func(o *csv1.ClusterAddon) { o.Spec.ClusterRef = nil }), want: mine(nil)},
		"it was said to be of another cluster": {have: mine(func(o *csv1.ClusterAddon) { o.Spec.ClusterRef.Name = "x" }), want: mine(nil)},
		"it was said to be of something else":  {have: mine(func(o *csv1.ClusterAddon) { o.Spec.ClusterRef.Kind = "x" }), want: mine(nil)},
		"a finalizer of old is removed": {have: mine(func(o *csv1.ClusterAddon) { o.Finalizers = []string{csv1.AddonFinalizer} }),
			want: mine(func(o *csv1.ClusterAddon) { o.Finalizers = []string{} })},
		"a cluster of no release gets none":   {alone: true, done: true},
		"a cluster that is deleted gets none": {cluster: deleted, done: true},
		"with its cluster it is left as it is": {have: mine(func(o *csv1.ClusterAddon) { o.OwnerReferences = nil }), cluster: deleted,
			want: mine(func(o *csv1.ClusterAddon) { o.OwnerReferences = nil }), done: true},
		"of a cluster whose release was taken away": {have: mine(nil), alone: true, want: mine(func(o *csv1.ClusterAddon) {
			o.Status.Conditions = []metav1.Condition{
				{Type: "ClusterReady", Status: "False", Reason: "NotFromRelease", ObservedGeneration: 1,
					Message: "the cluster's class is of no release here; what was applied is left as it is"},
			}
		}), done: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.have != nil {
				objects = append(objects, c.have)
			}
			if c.cluster == nil {
				c.cluster = newCluster("v1")
			}
			r, s := alone(), &scope{cluster: c.cluster, release: newRelease("v1")}
			if c.alone {
				s.release = nil
			}
			r.Client = newClient(t, objects...)
			err := r.ensureAddon(t.Context(), s)
			if reconcile.IsWait(err) != c.done || (err != nil && !c.done) || (c.done && requeue(t, err) != 0) {
				t.Fatalf("error %v", err)
			}
			if c.want == nil {
				if s.addon != nil {
					t.Errorf("%+v", s.addon)
				}
				return
			}
			s.addon.ResourceVersion, s.addon.UID, s.addon.Generation, s.addon.TypeMeta = "", "addon", 1, metav1.TypeMeta{}
			for i := range s.addon.Status.Conditions {
				s.addon.Status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			if d := cmp.Diff(c.want, s.addon); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheckNamespaceAllowed(t *testing.T) {
	paused := newCluster("v1")
	paused.Spec.Paused = ptr.To(true)
	own := newCluster("v1")
	own.Namespace = "s"
	for name, c := range map[string]struct {
		cluster *clusterv1.Cluster
		want    cond
		after   time.Duration
	}{
		"its own namespace": {own, cond{}, 0},
		"another namespace": {newCluster("v1"),
			cond{"False", "NotAllowed", "release s/docker-ferrol-1-27-v1 does not serve clusters of namespace a; its ClusterStack must allow it in spec.allowedNamespaces"}, time.Minute},
		"it is paused": {paused, cond{"False", "Paused", "the cluster is paused, so its add-ons are left as they are"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := alone(), newScope(csv1.ClusterAddonStatus{})
			r.Client, s.cluster = newClient(t), c.cluster
			err := r.checkNamespaceAllowed(t.Context(), s)
			if (err == nil) != (c.want == cond{}) || (err != nil && requeue(t, err) != c.after) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(c.want, conditionOf(s.addon, csv1.ConditionClusterReady)); d != "" {
				t.Error(d)
			}
		})
	}
}
