// Package install creates the objects in the plane that it needs before anybody can use it: custom resource
// definitions, roles, webhook registrations.
package install

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// fieldOwner owns the fields that polderd itself applies.
const fieldOwner = client.FieldOwner("polderd")

// NewClient returns a client for Apply. cfg may be set to protobuf or not.
func NewClient(cfg *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = "" // apply speaks JSON and YAML only
	return client.New(cfg, client.Options{Scheme: scheme})
}

// Apply applies the objects by server-side apply: what others added to them stays, and objects that are right
// already are not written.
func Apply(ctx context.Context, c client.Client, objs ...client.Object) error {
	for _, o := range objs {
		u, err := toUnstructured(o, c.Scheme())
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

func toUnstructured(o client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", gvk.Kind, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	for k, v := range u.Object {
		if v == nil { // an empty list without omitempty: not ours to own
			delete(u.Object, k)
		}
	}
	return u, nil
}
