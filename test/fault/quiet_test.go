package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/polder-kaas/polder/test/testenv"
)

// quietTime is how long nothing may be written, and settleTime when a plane must be quiet at the latest.
const (
	quietTime  = 2 * time.Minute
	settleTime = 10 * time.Minute
)

// TestQuietPlane looks at every object of a plane with a cluster that is ready: for two minutes none of them changes.
// Leases and the times at which providers were last seen are what they are for.
func TestQuietPlane(t *testing.T) {
	p := startWithCluster(t)
	var changed []string
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		before := snapshot(t, p)
		<-time.After(quietTime)
		after := snapshot(t, p)
		changed = nil
		for key, version := range after {
			if before[key] != version {
				changed = append(changed, key)
			}
		}
		for key := range before {
			if _, ok := after[key]; !ok {
				changed = append(changed, key+" is gone")
			}
		}
		if len(changed) == 0 {
			t.Logf("%d objects, none of them changed in %s", len(after), quietTime)
			return
		}
		slices.Sort(changed)
		t.Logf("within %s changed: %s", quietTime, strings.Join(changed, ", "))
	}
	t.Errorf("the plane is not quiet after %s: %s", settleTime, strings.Join(changed, ", "))
}

// startWithCluster starts a plane and makes a local cluster with one worker in it, through a WorkloadCluster.
func startWithCluster(t *testing.T, flags ...string) *testenv.Plane {
	t.Helper()
	return startClusterIn(t, testenv.NewTree(t, false), flags...)
}

func startClusterIn(t *testing.T, tree testenv.Tree, flags ...string) *testenv.Plane {
	t.Helper()
	p := testenv.NewPlane(t, tree)
	p.OfferShipped = true
	p.Start(t, flags...)
	p.AwaitReady(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"provider": "local", "stack": map[string]any{"name": "scs"}, "workers": []any{map[string]any{"name": "default", "replicas": int64(1)}},
	}}}
	o.SetAPIVersion("polder.dev/v1alpha1")
	o.SetKind("WorkloadCluster")
	o.SetNamespace(ns)
	o.SetName("quiet")
	testenv.Eventually(t, wait, func() error { return c.Create(t.Context(), o) }) // the catalogue is filled after the start
	testenv.Eventually(t, settleTime, func() error {
		u := o.DeepCopy()
		if err := c.Get(t.Context(), keyOf(o), u); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase != "Ready" {
			return fmt.Errorf("the cluster is %s", phase)
		}
		return nil
	})
	return p
}

// snapshot has the version of every object of the plane.
func snapshot(t *testing.T, p *testenv.Plane) map[string]string {
	t.Helper()
	out := map[string]string{}
	forEachObject(t, p, func(r schema.GroupVersionResource, o *unstructured.Unstructured) {
		key, version := r.Resource+" "+o.GetNamespace()+"/"+o.GetName(), o.GetResourceVersion()
		switch r.Resource {
		case "leases", "events":
			return
		case "providers":
			unstructured.RemoveNestedField(o.Object, "status", "lastSeenTime")
			b, err := json.Marshal([]any{o.Object["spec"], o.Object["status"]})
			if err != nil {
				t.Fatal(err)
			}
			version = string(b)
		}
		out[key] = version
	})
	return out
}

// forEachObject calls f for every object that can be listed.
func forEachObject(t *testing.T, p *testenv.Plane, f func(schema.GroupVersionResource, *unstructured.Unstructured)) {
	t.Helper()
	cfg := p.RESTConfig(t)
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			all, err := dyn.Resource(gv.WithResource(r.Name)).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			for i := range all.Items {
				f(gv.WithResource(r.Name), &all.Items[i])
			}
		}
	}
}
