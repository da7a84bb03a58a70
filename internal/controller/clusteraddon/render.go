package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// renderAddons renders all add-ons of the release for the cluster, once in a run.
func (r *Reconciler) renderAddons(ctx context.Context, s *scope) ([]stack.RenderedStage, error) {
	if s.rendered != nil {
		return s.rendered, nil
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
	all, err := r.renderFromRecord(ctx, s, func(rec render.Record) ([]stack.RenderedStage, error) {
		return r.Renderer.RenderAddons(ctx, s.content, stack.AddonInput{Cluster: data, APIVersions: apis, Record: rec})
	})
	if err != nil {
		return nil, err
	}
	s.rendered = all
	return all, nil
}

// maxRenderings is how often one run renders, at most, until a rendering changes nothing in the record.
const maxRenderings = 5

// renderFromRecord renders until all keys and certificates come from the record as it is stored. A rendering that made
// keys is not used: they are stored, and the next one has them. So nothing is ever applied that the next run, or
// another one at the same time, would render differently.
func (r *Reconciler) renderFromRecord(
	ctx context.Context, s *scope, renderWith func(render.Record) ([]stack.RenderedStage, error),
) ([]stack.RenderedStage, error) {
	renewed := false   // once in a run: a certificate may end as soon as it begins
	var conflict error // of the last rendering
	for range maxRenderings {
		rec, err := r.ensureRecord(ctx, s)
		if conflict = err; isRecordConflict(err) {
			continue
		}
		if err != nil {
			s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
			return nil, err
		}
		all, err := renderWith(rec.Record)
		if err != nil {
			return nil, r.explainRenderError(s, err)
		}
		next, renew := rec.Record, !renewed && needsCertificateRenewal(rec.Record, all, r.Clock.Now())
		for _, st := range all {
			next = next.WithKeys(st.NewKeys)
		}
		if renew { // all certificates of the cluster's charts are issued again; keys and passwords stay
			next.Renewed = r.Clock.Now().UTC().Truncate(time.Second)
		}
		if !renew && len(next.Keys) == len(rec.Keys) {
			return all, nil
		}
		conflict = r.updateRecord(ctx, rec, next)
		if conflict != nil && !isRecordConflict(conflict) {
			return nil, r.explainRecordError(s, conflict)
		}
		renewed = renewed || renew && conflict == nil
	}
	if conflict != nil {
		// Nothing new is known of the add-ons, so their conditions stay.
		return nil, reconcile.Wait(wait.Jitter(retryDelay, 1), "%v", conflict)
	}
	return nil, r.explainRecordError(s, errKeysVary)
}

// errKeysVary says that no record can hold the keys of a chart.
var errKeysVary = errors.New("the charts ask for other private keys at each rendering, so none can be recorded")

// explainRecordError says in the status why keys that charts ask for cannot be stored. A record that is full stays so
// until somebody changes it: making keys again and again would only cost time.
func (r *Reconciler) explainRecordError(s *scope, err error) error {
	s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonApplyFailed, err.Error())
	var full *recordFullError
	if errors.As(err, &full) || errors.Is(err, errKeysVary) {
		return reconcile.Wait(r.Interval, "%v", err)
	}
	return err
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
func (r *Reconciler) readReferenced(ctx context.Context, s *scope, ref clusterv1.ContractVersionedObjectReference,
	preferred string) (map[string]any, error) {
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
