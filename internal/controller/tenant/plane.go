package tenant

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// ensurePlane gives a Tenant to its own plane, where it is one that shares: its members have the same rights there, and
// its quota is counted there. It returns why members cannot use it yet.
func (r *Reconciler) ensurePlane(ctx context.Context, t *v1alpha1.Tenant) (*refusal, error) {
	if r.Planes == nil {
		return &refusal{v1alpha1.ReasonPlaneFailed,
			"nobody here runs planes of tenants; delete the tenant, and make it with plane: Shared"}, nil
	}
	uid := types.UID(t.Status.NamespaceUID)
	switch s := r.Planes.State(uid); s.Phase {
	case tenancy.PlaneReady:
	case tenancy.PlaneLost:
		return &refusal{v1alpha1.ReasonPlaneLost, notReady + s.ForMembers()}, nil
	case tenancy.PlaneFailed:
		return &refusal{v1alpha1.ReasonPlaneFailed, notReady + s.ForMembers()}, nil
	default:
		return &refusal{v1alpha1.ReasonPlaneStarting, notReady + s.ForMembers()}, nil
	}
	c, err := r.Planes.Client(uid)
	if err != nil { // it has just ended, and says so
		return &refusal{v1alpha1.ReasonPlaneStarting, notReady + tenancy.PlaneState{}.ForMembers()}, nil
	}
	there, err := copyTenant(ctx, c, t)
	if err != nil {
		return nil, fmt.Errorf("writing it to its own plane: %w", err)
	}
	ready := meta.FindStatusCondition(there.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != there.Generation:
		return &refusal{v1alpha1.ReasonProgressing, "its own plane has not looked at it yet"}, nil
	case ready.Status != metav1.ConditionTrue:
		return &refusal{ready.Reason, ready.Message}, nil
	}
	return nil, nil
}

const notReady = "the plane of its own is not ready: "

// copyTenant makes the Tenant in a plane of its own what it is here, and returns it.
func copyTenant(ctx context.Context, c client.Client, t *v1alpha1.Tenant) (*v1alpha1.Tenant, error) {
	want := t.Spec.DeepCopy()
	want.Plane = v1alpha1.SharedPlane
	there := &v1alpha1.Tenant{}
	err := c.Get(ctx, client.ObjectKeyFromObject(t), there)
	if apierrors.IsNotFound(err) {
		there.Name, there.Spec = t.Name, *want
		return there, c.Create(ctx, there)
	}
	if err != nil || equality.Semantic.DeepEqual(there.Spec, *want) {
		return there, err
	}
	there.Spec = *want
	return there, c.Update(ctx, there)
}

// checkPlane refuses a namespace that is in another kind of plane: what is in it would be out of sight.
func checkPlane(t *v1alpha1.Tenant, ns *corev1.Namespace) *refusal {
	switch own := tenancy.HasOwnPlane(ns); {
	case own == t.IsDedicated():
		return nil
	case own:
		return &refusal{v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
			"namespace %s has a plane of its own; make the tenant with plane: Dedicated, or with another spec.namespace", ns.Name)}
	}
	return &refusal{v1alpha1.ReasonNamespaceTaken, fmt.Sprintf(
		"namespace %s is in the plane that all share; a tenant with plane: Dedicated needs a new one: make it with another spec.namespace",
		ns.Name)}
}
