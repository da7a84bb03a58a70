package tenantplane

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// copiedLabel is on what was copied into a plane: what is not in this one's catalogue any more is deleted there.
const copiedLabel = "polder.dev/copied"

// copyLabels gives the namespace in the plane the labels of this one, by which stacks choose whom they serve. It waits
// for the plane's own controller to make it.
func (r *Reconciler) copyLabels(ctx context.Context, ns *corev1.Namespace, c client.Client) error {
	its := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: ns.Name}, its); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := its.DeepCopy()
	maps.DeleteFunc(its.Labels, func(k, _ string) bool { return isOperators(k) })
	for k, v := range ns.Labels {
		if isOperators(k) {
			metav1.SetMetaDataLabel(&its.ObjectMeta, k, v)
		}
	}
	if maps.Equal(before.Labels, its.Labels) {
		return nil
	}
	return c.Patch(ctx, its, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// isOperators reports whether a label is neither Polder's nor Kubernetes'.
func isOperators(key string) bool {
	return !strings.HasPrefix(key, "polder.dev/") && key != corev1.LabelMetadataName
}

// copyCatalogue gives a plane the stacks of the catalogue here, with the Secrets that they name. It fetches and renders
// them itself.
func (r *Reconciler) copyCatalogue(ctx context.Context, c client.Client) error {
	var here, there csv1.ClusterStackList
	if err := r.Cache.List(ctx, &here, client.InNamespace(v1alpha1.CatalogueNamespace)); err != nil {
		return err
	}
	if len(here.Items) > 0 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CatalogueNamespace}}
		if err := c.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := c.List(ctx, &there, client.InNamespace(v1alpha1.CatalogueNamespace)); err != nil {
		return err
	}
	has := map[string]*csv1.ClusterStack{}
	for i := range there.Items {
		has[there.Items[i].Name] = &there.Items[i]
	}
	for i := range here.Items {
		s := &here.Items[i]
		if !s.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.copyStack(ctx, c, s, has[s.Name]); err != nil {
			return err
		}
		delete(has, s.Name)
	}
	for _, s := range has {
		if s.Labels[copiedLabel] == "" || !s.DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.Delete(ctx, s, client.Preconditions{UID: &s.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// copyStack makes one stack in a plane what it is here.
func (r *Reconciler) copyStack(ctx context.Context, c client.Client, here, there *csv1.ClusterStack) error {
	if here.Spec.Source != nil && here.Spec.Source.SecretRef != nil {
		if err := r.copySecret(ctx, c, here.Spec.Source.SecretRef.Name); err != nil {
			return err
		}
	}
	if there == nil {
		o := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: here.Namespace, Name: here.Name, Labels: map[string]string{copiedLabel: "true"},
		}}
		here.Spec.DeepCopyInto(&o.Spec)
		return c.Create(ctx, o)
	}
	if equality.Semantic.DeepEqual(here.Spec, there.Spec) {
		return nil
	}
	metav1.SetMetaDataLabel(&there.ObjectMeta, copiedLabel, "true")
	here.Spec.DeepCopyInto(&there.Spec)
	return c.Update(ctx, there)
}

// copySecret makes one Secret in a plane what it is here. One that is not here is said by the stack that names it.
func (r *Reconciler) copySecret(ctx context.Context, c client.Client, name string) error {
	key := client.ObjectKey{Namespace: v1alpha1.CatalogueNamespace, Name: name}
	here, there := &corev1.Secret{}, &corev1.Secret{}
	if err := r.Secrets.Get(ctx, key, here); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := c.Get(ctx, key, there)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: name, Labels: map[string]string{copiedLabel: "true"},
		}, Type: here.Type, Data: here.Data})
	}
	if err != nil || equality.Semantic.DeepEqual(here.Data, there.Data) {
		return err
	}
	there.Data = here.Data
	return c.Update(ctx, there)
}
