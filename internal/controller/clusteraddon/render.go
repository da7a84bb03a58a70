package clusteraddon

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/version"
)

// renderAddons renders all add-ons of the release for the cluster, once in a run.
func (r *Reconciler) renderAddons(ctx context.Context, s *scope) ([]stack.RenderedStage, error) {
	if s.rendered != nil {
		return s.rendered, nil
	}
	// The record comes first: rendering without it would make other passwords every time.
	rec, err := r.ensureRecord(ctx, s)
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
		return nil, err
	}
	c, err := r.Renderer.Class(ctx, s.content, s.release.Status.Digest)
	if err != nil {
		return nil, r.explainRenderError(s, err)
	}
	data, err := r.clusterData(ctx, s, c)
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
		return nil, err
	}
	apis, err := s.workload.APIVersions(ctx)
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonUnreachable, err.Error())
		return nil, err
	}
	in := stack.AddonInput{Cluster: data, APIVersions: apis, Record: rec}
	all, err := r.Renderer.RenderAddons(ctx, s.content, in)
	// When a certificate expires is known only after rendering, so a renewal renders twice.
	if err == nil && needsCertificateRenewal(rec, all, r.Clock.Now()) {
		if in.Record, err = r.renewCertificates(ctx, s, rec); err != nil {
			return nil, err
		}
		all, err = r.Renderer.RenderAddons(ctx, s.content, in)
	}
	if err != nil {
		return nil, r.explainRenderError(s, err)
	}
	s.rendered = all
	return all, nil
}

// explainRenderError says in the status what is wrong with a release. Only another release can mend it, or other
// values.
func (r *Reconciler) explainRenderError(s *scope, err error) error {
	var found finding.List
	if !errors.As(err, &found) {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
		return err
	}
	s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonInvalid, err.Error())
	return reconcile.Wait(r.Interval, "%v", err)
}

// clusterData returns what templates of values see, in the version their class is written in.
func (r *Reconciler) clusterData(ctx context.Context, s *scope, c *class.Class) (stack.ClusterData, error) {
	cluster, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.cluster)
	if err != nil {
		return stack.ClusterData{}, err
	}
	cluster["apiVersion"], cluster["kind"] = clusterv1.GroupVersion.String(), "Cluster"
	if s.preparing {
		if err := setPreparedClass(cluster, s.release); err != nil {
			return stack.ClusterData{}, err
		}
	}
	if err := addVariableDefaults(cluster, c.Defaults()); err != nil {
		return stack.ClusterData{}, err
	}
	d := stack.ClusterData{Cluster: cluster}
	if d.ControlPlane, err = r.readReferenced(ctx, s, s.cluster.Spec.ControlPlaneRef, c.Version); err != nil {
		return d, err
	}
	if d.InfraCluster, err = r.readReferenced(ctx, s, s.cluster.Spec.InfrastructureRef, c.Version); err != nil {
		return d, err
	}
	return d.ConvertTo(c.Version)
}

// setPreparedClass sets the class and version that the cluster will have once its add-ons are applied.
func setPreparedClass(cluster map[string]any, r *csv1.ClusterStackRelease) error {
	name, err := version.ParseReleaseName(r.Name)
	if err != nil {
		return err
	}
	ref := map[string]any{"name": name.Class(), "namespace": r.Namespace}
	if err := unstructured.SetNestedMap(cluster, ref, "spec", "topology", "classRef"); err != nil {
		return err
	}
	return unstructured.SetNestedField(cluster, r.Status.KubernetesVersion, "spec", "topology", "version")
}

// addVariableDefaults adds the variables that the cluster does not set, with the defaults of the class.
func addVariableDefaults(cluster map[string]any, defaults []any) error {
	have, _, err := unstructured.NestedSlice(cluster, "spec", "topology", "variables")
	if err != nil {
		return err
	}
	set := map[any]bool{}
	for _, v := range have {
		if m, ok := v.(map[string]any); ok {
			set[m["name"]] = true
		}
	}
	for _, d := range defaults {
		if m, ok := d.(map[string]any); ok && !set[m["name"]] {
			v, err := normalizeJSON(m)
			if err != nil {
				return err
			}
			have = append(have, v)
		}
	}
	return unstructured.SetNestedSlice(cluster, have, "spec", "topology", "variables")
}

// normalizeJSON returns a value as JSON decodes it: unstructured objects can hold no other types.
func normalizeJSON(v map[string]any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(b, &out)
}

// readReferenced reads an object that the Cluster refers to, in the preferred version if its group has it.
func (r *Reconciler) readReferenced(ctx context.Context, s *scope, ref clusterv1.ContractVersionedObjectReference, preferred string) (map[string]any, error) {
	if ref.Name == "" {
		return nil, nil
	}
	gk := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	m, err := r.Live.RESTMapper().RESTMapping(gk, preferred)
	if meta.IsNoMatchError(err) {
		m, err = r.Live.RESTMapper().RESTMapping(gk)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind)
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}, u); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	return u.Object, nil
}
