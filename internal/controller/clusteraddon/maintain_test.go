package clusteraddon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/workload"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// inCluster makes an object of kind ConfigMap or Job.
func inCluster(kind, name string, conditions ...map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "x", "name": name}}}
	if kind == "Job" {
		u.SetAPIVersion("batch/v1")
		var all []any
		for _, c := range conditions {
			all = append(all, c)
		}
		u.Object["status"] = map[string]any{"conditions": all}
	}
	return u
}

func listed(u *unstructured.Unstructured) csv1.Resource {
	gvk := u.GroupVersionKind()
	return csv1.Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), Status: csv1.ResourceSynced}
}

// withCluster makes a scope with a workload cluster that knows these two kinds.
func withCluster(objects ...client.Object) *scope {
	m := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "batch", Version: "v1", Kind: "Job"}} {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	s := newScope(at("v1", "v1", "v1", upgrade))
	s.workload = &workload.Cluster{Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(m).WithObjects(objects...).Build()}
	return s
}

// Jobs, and objects of stages for new clusters only, are not applied again. Their health is checked all the same.
func TestCheckUnappliedObjects(t *testing.T) {
	failed := map[string]any{"type": "Failed", "status": "True", "message": "it gave up"}
	complete := map[string]any{"type": "Complete", "status": "True"}
	applied, there, gone := inCluster("ConfigMap", "applied"), inCluster("ConfigMap", "there"), inCluster("ConfigMap", "gone")
	bad, good, cleared := inCluster("Job", "bad", failed), inCluster("Job", "good", complete), inCluster("Job", "cleared")
	hook := inCluster("ConfigMap", "hook") // it has removed itself, and is of no stage
	rendered := func(objects ...*unstructured.Unstructured) (out []render.Object) {
		for _, o := range objects {
			out = append(out, render.Object{Value: o.DeepCopy().Object})
		}
		return out
	}
	all := []stack.RenderedStage{
		{RuntimeHook: create, Stage: stage("cni", "apply"), Objects: rendered(there, gone, bad, good, cleared)},
		{RuntimeHook: upgrade, Stage: stage("csi", "apply"), Objects: rendered(applied)},
	}
	s := withCluster(there, bad, good)
	for _, o := range []*unstructured.Unstructured{applied, there, gone, bad, good, cleared, hook} {
		s.addon.Status.Resources = append(s.addon.Status.Resources, listed(o))
	}
	is, err := s.checkUnappliedObjects(t.Context(), all, map[apply.Key]bool{apply.InventoryRef(listed(applied)).Key(): true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range is {
		got = append(got, fmt.Sprintf("%s %s: %s", a.ref.Kind, a.ref.Name, a.message))
	}
	slices.Sort(got)
	want := []string{"ConfigMap gone: it is gone, and is made by a stage for new clusters only", "Job bad: "}
	if len(got) != 2 || got[0] != want[0] || !strings.HasPrefix(got[1], want[1]) || len(got[1]) == len(want[1]) {
		t.Error(cmp.Diff(want, got))
	}
}

// An inventory that would be too long is refused before anything is applied.
func TestRecordIntentTooMuch(t *testing.T) {
	s := withCluster()
	for i := range csv1.MaxAddonResources {
		s.addon.Status.Resources = append(s.addon.Status.Resources, listed(inCluster("ConfigMap", fmt.Sprint(i))))
	}
	set, err := s.newApplier().Prepare(t.Context(), []*unstructured.Unstructured{inCluster("ConfigMap", "one-more")})
	if err != nil {
		t.Fatal(err)
	}
	err = alone().recordIntent(t.Context(), s, set)
	if !errors.Is(err, apply.ErrRefused) || !strings.Contains(err.Error(), "have 4097 objects with this stage, and a ClusterAddon can list 4096") ||
		len(s.addon.Status.Resources) != csv1.MaxAddonResources {
		t.Errorf("%v, %d", err, len(s.addon.Status.Resources))
	}
}
