// Package objects reads objects of the plane, and turns them into types and back.
package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/polder-kaas/polder/internal/cli/connect"
)

// List reads all objects of a kind, of a namespace or, if that is empty, of all, within connect.RequestTimeout. Its
// errors are those of the client, which Access.Explain puts into words.
func List[T any](ctx context.Context, a *connect.Access, kind schema.GroupVersionResource, namespace string,
	o metav1.ListOptions) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	var items []T
	for {
		l, err := a.Client.Resource(kind).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range l.Items {
			item, err := FromUnstructured[T](&l.Items[i])
			if err != nil {
				return nil, err
			}
			items = append(items, *item)
		}
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return items, nil
		}
	}
}

// FromUnstructured is an object as a type. It takes what the type knows: a plane that is newer may have more. Who has
// written which field is left out: nobody here asks, and it is the larger part of the work.
func FromUnstructured[T any](u *unstructured.Unstructured) (*T, error) {
	var item T
	u = &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if m, ok := u.Object["metadata"].(map[string]any); ok && m["managedFields"] != nil {
		m = maps.Clone(m)
		delete(m, "managedFields")
		u.Object["metadata"] = m
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &item); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", u.GetKind(), u.GetName(), err)
	}
	return &item, nil
}

// ToUnstructured is a value of a type as an object. It leaves out what is empty, as the type says.
func ToUnstructured(v any) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(b)
}
