package clusterstackrelease

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
)

const digest = "sha256:one"

// appliedRelease makes a release with two objects that were applied.
func appliedRelease() *csv1.ClusterStackRelease {
	o := newRelease()
	o.Status.Digest = digest
	for _, name := range []string{"one", "two"} {
		o.Status.Resources = append(o.Status.Resources, csv1.Resource{
			Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: name, UID: types.UID("uid-" + name), Generation: 3, Status: csv1.ResourceSynced,
		})
	}
	return o
}

// newLiveObject makes one of its objects, as the API server has it.
func newLiveObject(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, UID: types.UID("uid-" + name), Generation: 3,
		Labels: map[string]string{"ours": "yes", "theirs": "yes", csv1.OwnedLabel: csv1.OwnedValue}, Annotations: map[string]string{"ours": "yes", "theirs": "yes"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: "n", UID: "node"},
			{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStackRelease", Name: "r", UID: "release", Controller: ptr.To(true)},
		},
	}}
}

// fakeCache is a cache of the metadata of ConfigMaps in one namespace.
type fakeCache map[string]*corev1.ConfigMap

func (c fakeCache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	found, ok := c[key.Name], key.Namespace == "a" && o.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ConfigMap")
	if !ok || found == nil {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	into, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return errBroken // the cache has only metadata
	}
	found.ObjectMeta.DeepCopyInto(&into.ObjectMeta)
	return nil
}

func (fakeCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errBroken
}

// applySet makes the set that was applied for it.
func applySet(t *testing.T) *apply.Set {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	a := &apply.Applier{Client: fake.NewClientBuilder().WithRESTMapper(mapper).Build(), Owner: fieldOwner, Namespace: "a"}
	var objects []*unstructured.Unstructured
	for _, name := range []string{"one", "two"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetName(name)
		u.SetLabels(map[string]string{"ours": "yes"})
		u.SetAnnotations(map[string]string{"ours": "yes"})
		objects = append(objects, u)
	}
	set, err := a.Prepare(t.Context(), objects)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Objects are applied again unless nobody has modified them.
func TestIsUnchanged(t *testing.T) {
	labels := func(kv ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		return out
	}
	set := applySet(t)
	for name, c := range map[string]struct {
		release func(*csv1.ClusterStackRelease)
		object  func(*corev1.ConfigMap) *corev1.ConfigMap // nil if it is gone
		want    bool
	}{
		"nothing": {want: true},
		"what others have added to it": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap {
			o.Labels["more"], o.Annotations["more"] = "yes", "yes"
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "m", UID: "m"})
			return o
		}, want: true},
		"what others have taken away of theirs": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap {
			o.Labels, o.Annotations = labels("ours", "yes", csv1.OwnedLabel, csv1.OwnedValue), labels("ours", "yes")
			return o
		}, want: true},
		"the release is another of its name": {release: func(r *csv1.ClusterStackRelease) { r.UID = "another" }},
		"the inventory has one more": {release: func(r *csv1.ClusterStackRelease) {
			more := r.Status.Resources[0]
			more.Name = "three"
			r.Status.Resources = append(r.Status.Resources, more)
		}},
		"the inventory is lost":              {release: func(r *csv1.ClusterStackRelease) { r.Status.Resources = nil }},
		"the inventory has one not in order": {release: func(r *csv1.ClusterStackRelease) { r.Status.Resources[1].Status = csv1.ResourceNotSynced }},
		"the inventory says nothing of one":  {release: func(r *csv1.ClusterStackRelease) { r.Status.Resources[1].Status = "" }},
		"an object is gone":                  {object: func(*corev1.ConfigMap) *corev1.ConfigMap { return nil }},
		"an object is another of its name":   {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.UID = "another"; return o }},
		"an object was changed":              {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.Generation++; return o }},
		"an object is being deleted": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap {
			o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}, []string{"example.com/f"}
			return o
		}},
		"an object has lost its owner":             {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.OwnerReferences = o.OwnerReferences[:1]; return o }},
		"an object has another owner":              {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.OwnerReferences[1].UID = "another"; return o }},
		"its owner is not in control":              {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.OwnerReferences[1].Controller = ptr.To(false); return o }},
		"its owner does not say who is in control": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.OwnerReferences[1].Controller = nil; return o }},
		"an object has lost a label": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap {
			o.Labels = labels(csv1.OwnedLabel, csv1.OwnedValue)
			return o
		}},
		"an object has a label with another value": {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.Labels["ours"] = "no"; return o }},
		"an object has lost an annotation":         {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.Annotations = nil; return o }},
		"an object has another annotation":         {object: func(o *corev1.ConfigMap) *corev1.ConfigMap { o.Annotations["ours"] = ""; return o }},
	} {
		t.Run(name, func(t *testing.T) {
			var m appliedCache
			m.remember(appliedRelease(), set, time.Now(), time.Hour)
			o, second := appliedRelease(), newLiveObject("two")
			if c.release != nil {
				c.release(o)
			}
			if c.object != nil {
				second = c.object(second)
			}
			if got := m.isUnchanged(t.Context(), fakeCache{"one": newLiveObject("one"), "two": second, "three": newLiveObject("three")}, o); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A process that has applied nothing yet trusts the status, as far as that goes.
func TestIsUnchangedSinceAnotherProcess(t *testing.T) {
	var m appliedCache
	o, cache := appliedRelease(), fakeCache{"one": newLiveObject("one"), "two": newLiveObject("two")}
	if !m.isUnchanged(t.Context(), cache, o) {
		t.Error("nobody has touched anything")
	}
	cache["two"].Generation++
	if m.isUnchanged(t.Context(), cache, o) {
		t.Error("an object was changed")
	}
	cache["two"].Generation--
	o.Status.Resources[0].UID = "" // as an older operator has left it
	if m.isUnchanged(t.Context(), cache, o) {
		t.Error("it is not known which object was applied")
	}
}

func TestIsDueAfterInterval(t *testing.T) {
	var m appliedCache
	now := time.Now()
	o := appliedRelease()
	for range 2 {
		if m.isDue(o, now, time.Hour) {
			t.Error("the time of a release that is not known begins now")
		}
	}
	now = now.Add(2 * time.Hour)
	if !m.isDue(o, now, time.Hour) {
		t.Error("it is time")
	}
	m.remember(o, applySet(t), now, time.Hour)
	if m.isDue(o, now, time.Hour) {
		t.Error("it was applied just now")
	}
	now = now.Add(2 * time.Hour)
	m.Forget(client.ObjectKeyFromObject(o))
	if m.isDue(o, now, time.Hour) {
		t.Error("it is not known any more")
	}
}

func TestRecordGenerations(t *testing.T) {
	o := appliedRelease()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetNamespace("a")
	u.SetName("one")
	u.SetUID("new")
	u.SetGeneration(7)
	recordGenerations(o.Status.Resources, []apply.Result{
		{Ref: apply.RefOf(u), Object: u}, {Ref: apply.InventoryRef(o.Status.Resources[1]), Err: errors.New("no")},
	})
	if r := o.Status.Resources; r[0].UID != "new" || r[0].Generation != 7 || r[1].UID != "" || r[1].Generation != 0 {
		t.Errorf("%+v", r)
	}
}

var errBroken = errors.New("broken")
