package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func TestDiscovery(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := apiutil.NewDynamicRESTMapper(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		got, err := m.RESTMapping(k.GroupKind(), k.Version)
		if err != nil || got.Resource.Resource != k.resource {
			t.Errorf("%s: %v, %v", k.Kind, got, err)
		}
	}
	if _, err := m.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "None"}); err == nil {
		t.Error("there is a kind that is not there")
	}
	d := discovery.NewDiscoveryClientForConfigOrDie(cfg)
	if _, all, err := d.ServerGroupsAndResources(); err != nil || len(all) != 5 {
		t.Errorf("%d lists, %v", len(all), err)
	}
	if v, err := d.ServerVersion(); err != nil || v.Major != "1" {
		t.Errorf("%v, %v", v, err)
	}
}

func TestObjects(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	cfg.ContentType = "application/json" // what is created is sent as it is said here
	c := f.client(cfg)
	ctx := t.Context()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "o", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "1"}}
	if err := c.Create(ctx, o); err != nil || o.UID == "" || o.ResourceVersion == "" || o.CreationTimestamp.IsZero() {
		t.Fatalf("%v: %+v", err, o)
	}
	if err := c.Create(ctx, o.DeepCopy()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second time: %v", err)
	}
	old := o.DeepCopy()
	o.Data["k"] = "2"
	if err := c.Update(ctx, o); err != nil || o.UID != old.UID || o.ResourceVersion == old.ResourceVersion {
		t.Errorf("update: %v, %+v", err, o)
	}
	if err := c.Update(ctx, old); !apierrors.IsConflict(err) {
		t.Errorf("update of what has changed: %v", err)
	}
	if err := c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":null,"l":"3"}}`))); err != nil || o.Data["l"] != "3" ||
		o.Data["k"] != "" {
		t.Errorf("merge: %v, %+v", err, o)
	}
	was := o.ResourceVersion
	if err := c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"l":"3"}}`))); err != nil || o.ResourceVersion != was {
		t.Errorf("what stays the same is written: %v, %s after %s", err, o.ResourceVersion, was)
	}
	if err := c.Patch(ctx, o, client.RawPatch("application/json-patch+json", []byte(`{}`))); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("another patch: %v", err)
	}
	if err := c.Delete(ctx, o); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"get": c.Get(ctx, client.ObjectKeyFromObject(o), o), "delete": c.Delete(ctx, o), "update": c.Update(ctx, o),
		"merge": c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{}`))),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s of what is gone: %v", name, err)
		}
	}
}

func TestApply(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	c := f.client(cfg)
	apply := func(verb string, more ...any) {
		t.Helper()
		u := &unstructured.Unstructured{
			Object: map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{verb}}}},
		}
		u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		u.SetName("viewer")
		if len(more) > 0 {
			u.SetLabels(map[string]string{"more": "yes"})
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	apply("get", "more")
	apply("list")
	var got rbacv1.ClusterRole
	if err := c.Get(t.Context(), client.ObjectKey{Name: "viewer"}, &got); err != nil {
		t.Fatal(err)
	}
	if got.Rules[0].Verbs[0] != "list" || got.Labels["more"] != "yes" {
		t.Errorf("what is applied is merged: %+v", got)
	}
}

func TestSelectors(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	for _, n := range []string{"a", "b"} {
		if err := f.AddNode(key("a"), node(n)); err != nil {
			t.Fatal(err)
		}
	}
	c := f.client(cfg)
	for name, o := range map[string]client.ListOption{
		"name": client.MatchingFields{"metadata.name": "b"}, "field": client.MatchingFields{"spec.providerID": "instant://test/b"},
		"label": client.MatchingLabels{corev1.LabelHostname: "b"},
	} {
		var l corev1.NodeList
		if err := c.List(t.Context(), &l, o); err != nil || len(l.Items) != 1 || l.Items[0].Name != "b" {
			t.Errorf("%s: %v, %v", name, l.Items, err)
		}
	}
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.MatchingFields{"spec.nodeName": "a"}); err != nil || len(pods.Items) != 0 {
		t.Errorf("%v, %v", pods.Items, err)
	}
}

func TestNodes(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	c := f.client(cfg)
	if err := f.AddNode(key("a"), node("n")); err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, n); err != nil {
		t.Fatal(err)
	}
	if n.Spec.ProviderID != "instant://test/n" || n.Status.NodeInfo.KubeletVersion != "v1.37.1" || n.Labels[corev1.LabelTopologyZone] != "zone-a" ||
		n.Status.Capacity.Cpu().Value() != 2 {
		t.Errorf("%+v", n)
	}
	if len(n.Status.Conditions) != 4 || n.Status.Conditions[0].Type != corev1.NodeReady || n.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("%+v", n.Status.Conditions)
	}
	// As Cluster API does it.
	stale, before := n.DeepCopy(), n.DeepCopy()
	n.Labels["x"], n.Spec.Taints = "y", []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	if err := c.Patch(t.Context(), n, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); err != nil || n.Labels["x"] != "y" ||
		len(n.Spec.Taints) != 1 {
		t.Errorf("%v: %+v", err, n)
	}
	other := stale.DeepCopy()
	other.Labels["z"] = "z"
	if err := c.Patch(t.Context(), other, client.StrategicMergeFrom(stale, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("what has changed since: %v", err)
	}
	if err := f.AddNode(key("a"), node("n")); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, n); err != nil || n.Labels["x"] != "y" {
		t.Errorf("a node that joins again stays as it is: %v, %v", err, n.Labels)
	}
	f.RemoveNode(key("n"))
	f.RemoveNode(key("n"))
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, n); !apierrors.IsNotFound(err) {
		t.Errorf("the node has not left: %v", err)
	}
}

// A cache is what Cluster API looks at nodes with.
func TestCacheFollowsNodes(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	cfg.Timeout = 0
	if err := f.AddNode(key("a"), node("early")); err != nil {
		t.Fatal(err)
	}
	nodes, err := cache.New(cfg, cache.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- nodes.Start(ctx) }()
	if !nodes.WaitForCacheSync(ctx) {
		t.Fatal("the cache is not filled")
	}
	sees := func(want int) {
		t.Helper()
		var l corev1.NodeList
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if err := nodes.List(t.Context(), &l); err != nil {
				t.Fatal(err)
			}
			if len(l.Items) == want {
				return
			}
		}
		t.Errorf("the cache has %d nodes, not %d", len(l.Items), want)
	}
	sees(1)
	for i := range 3 * maxRecentEvents { // more than is kept
		if err := f.AddNode(key("a"), node(fmt.Sprint("n", i))); err != nil {
			t.Fatal(err)
		}
	}
	sees(3*maxRecentEvents + 1)
	f.RemoveNode(key("early"))
	sees(3 * maxRecentEvents)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatchFromAVersion(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	nodes := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes()
	l, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AddNode(key("a"), node("n")); err != nil {
		t.Fatal(err)
	}
	f.RemoveNode(key("n"))
	w, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: l.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	var got []watch.EventType
	for range 2 {
		got = append(got, (<-w.ResultChan()).Type)
	}
	if diff := cmp.Diff([]watch.EventType{watch.Added, watch.Deleted}, got); diff != "" {
		t.Error(diff)
	}
	for i := range maxRecentEvents + 1 {
		if err := f.AddNode(key("a"), node(fmt.Sprint("n", i))); err != nil {
			t.Fatal(err)
		}
	}
	_, err = nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: l.ResourceVersion})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusGone {
		t.Errorf("what is no longer known: %v", err)
	}
	f.DeleteCluster(key("a"))
	for range w.ResultChan() { // it ends with its cluster
	}
}
