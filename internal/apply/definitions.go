package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// establishTimeout is how long the definitions of a group may take to be established. One takes less than a
// second on an API server that is not overloaded, several some more.
const establishTimeout = 30 * time.Second

// waitForDefinitions waits until the kinds of all definitions of a group can be used. The result of a definition
// that does not get there becomes an error.
func (a *Applier) waitForDefinitions(ctx context.Context, group []item, results []Result) {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	a.runParallel(len(group), func(i int) {
		r := &results[i]
		if r.Err != nil || !isDefinition(r.Ref) {
			return
		}
		if err := a.waitForDefinition(ctx, r); err != nil {
			*r = Result{Ref: r.Ref, Err: err}
		}
	})
}

// waitForDefinition waits until a definition is established and its kinds are discovered.
func (a *Applier) waitForDefinition(ctx context.Context, r *Result) error {
	var why error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ok, err := isEstablished(r.Object)
		if err != nil {
			return false, err
		}
		if ok {
			// Established is not enough: discovery hears of a kind later than the definition's status.
			why = a.checkDiscovered(r.Object)
			return why == nil, nil
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(r.Ref.GroupVersionKind())
		if why = a.Client.Get(ctx, client.ObjectKey{Name: r.Ref.Name}, live); why == nil {
			r.Object, why = live, errors.New("it is not established yet")
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case !wait.Interrupted(err):
		return fmt.Errorf("%s cannot be used: %w", r.Ref, err)
	case why == nil:
		why = err
	}
	return pendingError(fmt.Sprintf("%s cannot be used yet: %v", r.Ref, why))
}

// isEstablished says whether an API server serves a definition; the error says why it never will.
func isEstablished(crd *unstructured.Unstructured) (bool, error) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	ok := false
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		switch {
		case m["type"] == "NamesAccepted" && m["status"] == "False":
			return false, refusal(fmt.Sprintf("its names are taken: %v", m["message"]))
		case m["type"] == "Established" && m["status"] == "True":
			ok = true
		}
	}
	return ok, nil
}

// checkDiscovered returns an error as long as discovery lacks a version of the definition's kind.
func (a *Applier) checkDiscovered(crd *unstructured.Unstructured) error {
	for _, gvk := range servedKinds(crd) {
		if _, err := a.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			return err
		}
	}
	return nil
}
