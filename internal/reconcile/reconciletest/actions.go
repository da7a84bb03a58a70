package reconciletest

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ExpectReason checks that the object of this kind and name has the condition with the reason, observed at the
// object's present generation.
func ExpectReason(kind client.Object, name, condition, reason string) Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		gvk, err := apiutil.GVKForObject(kind, c.Scheme())
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		have := conditionOf(o, condition)
		if have["reason"] != reason || have["observedGeneration"] != o.GetGeneration() {
			return fmt.Errorf("%s/%s at generation %d has condition %s: %v, want the reason %s", gvk.Kind, name,
				o.GetGeneration(), condition, have, reason)
		}
		return nil
	}
}

// conditionOf returns a condition of the object, or nil.
func conditionOf(o *unstructured.Unstructured, condition string) map[string]any {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // conditions of another type count as none
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == condition {
			return m
		}
	}
	return nil
}

// expectReady checks that all objects of a kind are Ready at their present generation.
func expectReady(kind client.Object) Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		all, err := listObjects(ctx, c, kind, namespace)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("there is no %T", kind)
		}
		for _, o := range all {
			have := conditionOf(&o, "Ready")
			if have["status"] != "True" || have["observedGeneration"] != o.GetGeneration() {
				return fmt.Errorf("%s/%s at generation %d is not ready: %v", o.GetKind(), o.GetName(), o.GetGeneration(), have)
			}
		}
		return nil
	}
}

func deleteAll(kind client.Object) Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		all, err := listObjects(ctx, c, kind, namespace)
		errs := []error{err}
		for _, o := range all {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &o)))
		}
		return errors.Join(errs...)
	}
}

// listObjects reads the objects of a kind, unstructured, so that no field is lost.
func listObjects(ctx context.Context, c client.Client, kind client.Object,
	namespace string) ([]unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return nil, err
	}
	l := &unstructured.UnstructuredList{}
	gvk.Kind += "List"
	l.SetGroupVersionKind(gvk)
	if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	return l.Items, nil
}
