package clusteraddon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/condition"
)

// invalidConditionError says that an expression can never be true.
type invalidConditionError struct{ error }

// waitForCondition returns nil if a condition is true, and a notReadyError if it is not. A missing object only means
// that it is not there yet.
func (r *Reconciler) waitForCondition(ctx context.Context, s *scope, c *stack.Condition) error {
	if c == nil {
		return nil
	}
	keys := make([]string, len(c.Objects))
	for i, o := range c.Objects {
		keys[i] = o.Key
	}
	program, err := condition.Compile(c.Conditions, keys)
	if err != nil {
		return &invalidConditionError{fmt.Errorf("condition %q: %w", c.Conditions, err)}
	}
	objects := map[string]map[string]any{}
	for _, o := range c.Objects {
		u, err := readConditionObject(ctx, s.workload.Client, o)
		if err != nil {
			return err
		}
		objects[o.Key] = u.Object
	}
	met, missing, err := program.Eval(objects)
	switch {
	case err != nil:
		return &invalidConditionError{fmt.Errorf("condition %q: %w", c.Conditions, err)}
	case missing != "":
		return &notReadyError{fmt.Sprintf("%s: %s", c.Conditions, missing)}
	case !met:
		return &notReadyError{fmt.Sprintf("%s is not true yet", c.Conditions)}
	}
	return nil
}

// readConditionObject reads an object that a condition names. A kind or an object that is missing is a notReadyError.
func readConditionObject(ctx context.Context, c client.Client,
	o stack.ConditionObject) (*unstructured.Unstructured, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return nil, &invalidConditionError{err}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gv.WithKind(o.Kind))
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	m, err := c.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), gv.Version)
	switch {
	case meta.IsNoMatchError(err):
		return nil, &notReadyError{fmt.Sprintf("the cluster does not know kind %s of %s yet", o.Kind, o.APIVersion)}
	case err != nil:
		return nil, stripAPIStatus(err)
	case m.Scope.Name() == meta.RESTScopeNameRoot:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = stack.AddonNamespace
	}
	err = c.Get(ctx, key, u)
	if apierror.IsObjectNotFound(err, m.Resource.Resource, key.Name) {
		return nil, &notReadyError{fmt.Sprintf("%s %s is not there yet", o.Kind, key)}
	}
	return u, stripAPIStatus(err)
}
