package workloadcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/catalogue"
	"github.com/polder-kaas/polder/internal/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/provider"
)

// Times: a provider that broke down, or does not answer, is asked again soon at first, then less often; one that refuses
// may have changed its mind after a while.
const (
	firstRetry    = time.Second
	lastRetry     = 8 * time.Second
	providerRetry = 30 * time.Second
)

// accepted asks the provider whether it takes the spec, and what the class must be told, unless it has said so
// before. A cluster that is held at its release keeps what was said of that: what the spec says may fit the other
// one only.
func (r *Reconciler) accepted(ctx context.Context, s *scope) error {
	var err error
	if s.given, err = Given(ctx, r.Client, s.target); err != nil {
		return s.classless(err)
	}
	was := kept(s.cluster)
	if s.held {
		s.answer = was
		s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s is asked once the cluster can have its release", s.describe.Name))
		return nil
	}
	if s.answer, err = question(s.object, s.target.Key().String(), s.describe); err != nil {
		return err
	}
	if s.answer.Question == was.Question {
		s.answer.Topology = was.Topology // what it was asked about parts is the same, however an older Polder wrote that down
		s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s takes what the spec says", s.describe.Name))
		return nil
	}
	in := provider.Input{Cluster: s.object, Release: s.given}
	wrong, err := r.Provider.Validate(ctx, in)
	if err != nil {
		return r.broken(s, err)
	}
	if i := slices.IndexFunc(wrong, func(e *field.Error) bool { return e.Type == field.ErrorTypeInternal }); i >= 0 {
		return r.broken(s, wrong[i]) // it does not know now
	}
	wrong, settled := unsettled(s.object, wrong, func(part string) bool { return was.has(part) && was.Parts[part] == s.answer.Parts[part] })
	if len(wrong) > 0 {
		return s.refused(wrong)
	}
	if s.answer.Topology, err = r.Provider.Topology(ctx, without(in, settled)); err != nil {
		return r.broken(s, err)
	}
	s.answer.keep(was)
	s.set(v1alpha1.ConditionAccepted, "", fmt.Sprintf("%s takes what the spec says", s.describe.Name))
	return nil
}

// classless says that the class of a release is not there, though the release is.
func (s *scope) classless(err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	s.set(v1alpha1.ConditionAccepted, v1alpha1.ReasonReleaseNotReady, fmt.Sprintf("the class of release %s is not there", s.target.Key()))
	return reconcile.Wait(providerRetry, "%v", err)
}

func (s *scope) refused(wrong field.ErrorList) error {
	text := wrong.ToAggregate().Error()
	s.stall(v1alpha1.ConditionAccepted, v1alpha1.ReasonProviderRefused, advice{
		fmt.Sprintf("provider %s does not take the spec: %s", s.describe.Name, text), v1alpha1.Customer, "correct the spec",
	})
	return reconcile.Wait(providerRetry, "%s", text) // what the provider has may change
}

// broken says what became of a call to the provider. What runs goes on.
func (r *Reconciler) broken(s *scope, err error) error {
	reason := v1alpha1.ReasonProviderFailed
	switch {
	case errors.Is(err, guard.ErrPanicked):
		reason = v1alpha1.ReasonProviderPanicked
	case errors.Is(err, guard.ErrTimedOut):
		reason = v1alpha1.ReasonProviderTimedOut
	}
	s.stall(v1alpha1.ConditionAccepted, reason, advice{
		fmt.Sprintf("provider %s could not say what it needs: %v", r.Provider.Name(), err), v1alpha1.PlatformOperator,
		fmt.Sprintf("see the log of provider %s; it is asked again by itself", r.Provider.Name()),
	})
	return reconcile.Wait(r.again(s), "%v", err)
}

// again is when to ask again: half as long as it has failed so far, within limits, and not all clusters at once.
func (r *Reconciler) again(s *scope) time.Duration {
	c := meta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionAccepted)
	return wait.Jitter(min(max(firstRetry, r.Now().Sub(c.LastTransitionTime.Time)/2), lastRetry), 0.25)
}

// Given is what providers are told of a release: the class it has in the plane.
func Given(ctx context.Context, c client.Reader, rel catalogue.Release) (provider.Release, error) {
	out := provider.Release{Name: rel.Tag(), Kubernetes: rel.Object.Status.KubernetesVersion}
	class := &clusterv1.ClusterClass{}
	if err := c.Get(ctx, classOf(rel), class); err != nil {
		return out, fmt.Errorf("reading the class of release %s: %w", rel.Tag(), err)
	}
	for _, v := range class.Spec.Variables {
		schema, err := plain(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return out, fmt.Errorf("variable %s of class %s: %w", v.Name, class.Name, err)
		}
		out.Variables = append(out.Variables, provider.Variable{Name: v.Name, Required: v.Required != nil && *v.Required, Schema: schema})
	}
	for _, w := range class.Spec.Workers.MachineDeployments {
		out.Workers = append(out.Workers, w.Class)
	}
	return out, nil
}

// plain is a schema as JSON has it.
func plain(v clusterv1.JSONSchemaProps) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(b, &out)
}
