package workloadcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/topology"
)

// applyCluster applies the Cluster that the spec asks for, unless it is there already.
func (r *Reconciler) applyCluster(ctx context.Context, s *scope) error {
	if s.cluster == nil {
		if err := r.checkNoClusterUncached(ctx, s); err != nil {
			return err
		}
	}
	c, err := s.buildCluster()
	var taken *topology.ProviderVariableError
	if errors.As(err, &taken) {
		return s.reportProviderVariables(taken)
	}
	if err != nil {
		return r.reportProviderFailure(s, err)
	}
	want, digest, err := topology.Encode(c)
	if err != nil {
		return err
	}
	// The digest alone would not notice what others changed, nor the comparison that a field is no longer wanted.
	if s.cluster == nil || s.cluster.Annotations[v1alpha1.AppliedAnnotation] != digest ||
		!metav1.IsControlledBy(s.cluster, s.object) || !topology.HasDesiredState(s.cluster, want) {
		if err := r.serverSideApply(ctx, s, want); err != nil {
			return s.reportApplyError(err)
		}
	}
	s.object.Status.Versions.Release = s.target.Tag()
	told := "Cluster API was told what the spec says"
	if s.held {
		told = "Cluster API was told how many machines the spec asks for; the rest follows with the release"
	}
	s.conditions.SetTrue(v1alpha1.ConditionApplied, told)
	return nil
}

// reportProviderVariables says which parameters the customer cannot set. Admission refuses them, where it knows what
// the provider sets.
func (s *scope) reportProviderVariables(e *topology.ProviderVariableError) error {
	s.stall(v1alpha1.ConditionAccepted, v1alpha1.ReasonProviderRefused, advice{
		fmt.Sprintf("spec.parameters has %v", e), v1alpha1.Customer,
		"take out of spec.parameters: " + strings.Join(e.Parameters, ", "),
	})
	return reconcile.Wait(providerRetry, "%v", e) // what the provider sets may change
}

// checkNoClusterUncached makes sure that there is no Cluster of this name that the cache does not have yet: the first
// apply would take over one of somebody else. One of our own has a part in what is applied, so the run is made again.
func (r *Reconciler) checkNoClusterUncached(ctx context.Context, s *scope) error {
	c := &clusterv1.Cluster{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.object), c); err != nil {
		return apierror.IgnoreObjectNotFound(err, "clusters", s.object.Name)
	}
	s.cluster = c
	if err := r.checkOwner(ctx, s); err != nil {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "clusters"}, c.Name,
		errors.New("the cache does not know it yet"))
}

// buildCluster returns the Cluster that is wanted now.
func (s *scope) buildCluster() (*clusterv1.Cluster, error) {
	d := topology.BuildInput{
		Cluster: s.object, Class: s.target.ClassKey(), Release: s.contractRelease, Provider: s.description,
		Topology: s.answer.Topology,
	}
	if s.isPreparingAddons() {
		d.PrepareRelease = s.wanted.Key().String()
	}
	if s.held {
		d.Cluster = s.object.DeepCopy()
		d.Cluster.Spec.Workers, d.Cluster.Spec.Parameters = nil, nil // they may fit the other release only
	}
	c, err := topology.Build(d)
	if err != nil {
		return nil, err
	}
	if s.held {
		topology.Hold(c, s.cluster, s.object)
	}
	b, err := json.Marshal(s.answer)
	if err != nil {
		return nil, fmt.Errorf("writing down what the provider said: %w", err)
	}
	c.Annotations = topology.MergeMaps(c.Annotations, map[string]string{v1alpha1.AnswerAnnotation: string(b)})
	return c, nil
}

// serverSideApply writes the Cluster, and keeps the result: the cache gets it later.
func (r *Reconciler) serverSideApply(ctx context.Context, s *scope, want *unstructured.Unstructured) error {
	if s.cluster != nil {
		// It is for this very object: one that was deleted and created again since is not ours yet.
		want.SetUID(s.cluster.UID)
	} else {
		want.SetResourceVersion(apply.NoResourceVersion) // somebody else may create one of this name at this moment
	}
	if s.held {
		want.SetResourceVersion(s.cluster.ResourceVersion) // much of it was copied from there
	}
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), fieldOwner,
		client.ForceOwnership); err != nil {
		return err
	}
	c := &clusterv1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, c); err != nil {
		return fmt.Errorf("reading the Cluster that was applied: %w", err)
	}
	s.cluster = c
	r.recordCluster(s)
	return nil
}

// reportApplyError says in the status why the Cluster could not be applied.
func (s *scope) reportApplyError(err error) error {
	// Cluster API refuses a change of version while another upgrade is under way. That passes by itself.
	if apierrors.IsInvalid(err) && s.cluster != nil && !isTopologyReconciled(s.cluster) &&
		s.cluster.Spec.Topology.Version != s.contractRelease.Kubernetes {
		s.conditions.SetFalse(v1alpha1.ConditionApplied, v1alpha1.ReasonProgressing,
			fmt.Sprintf("another upgrade has to be done first: %v", err))
		return reconcile.Wait(providerRetry, "%v", err)
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonClusterRefused, advice{
			fmt.Sprintf("Cluster API does not take it: %v", err), v1alpha1.Customer,
			"correct what it names in the spec; what you cannot correct, tell the platform operator",
		})
		return reconcile.Wait(refusedRetry, "%v", err)
	}
	if !apierrors.IsConflict(err) {
		s.stall(v1alpha1.ConditionApplied, v1alpha1.ReasonApplyFailed, advice{
			err.Error(), v1alpha1.PlatformOperator, "see the log of the plane; it is tried again by itself",
		})
	}
	return err
}
