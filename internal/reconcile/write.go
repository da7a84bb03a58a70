package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write stores what a reconciliation has changed: metadata and spec in one request, then the status in another,
// and nothing if nothing changed. Lists, conditions too, are replaced as a whole, so what is written must have
// been made from the newest version: if before is older, the answer is a conflict, and nothing is lost.
// Afterwards, after has the resource version that was written.
func Write(ctx context.Context, c client.Client, before, after client.Object) error {
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return fmt.Errorf("comparing with what was read: %w", err)
	}
	var changed map[string]json.RawMessage
	if err := json.Unmarshal(data, &changed); err != nil {
		return fmt.Errorf("comparing with what was read: %w", err)
	}
	status, hasStatus := changed["status"]
	delete(changed, "status")
	version := before.GetResourceVersion()
	if len(changed) > 0 {
		answer := deepCopyOf(after)
		if err := c.Patch(ctx, answer, newMergePatch(changed, version)); err != nil {
			return err
		}
		version = answer.GetResourceVersion()
	}
	// The patch above has removed the last finalizer, and with it the object: there is no status to write.
	if hasStatus && !hasNoFinalizersLeft(after) {
		answer := deepCopyOf(after)
		if err := c.Status().Patch(ctx, answer,
			newMergePatch(map[string]json.RawMessage{"status": status}, version)); err != nil {
			return err
		}
		version = answer.GetResourceVersion()
	}
	after.SetResourceVersion(version)
	return nil
}

// hasNoFinalizersLeft says whether an object is being deleted and has no finalizers, so that it is gone once that
// is written.
func hasNoFinalizersLeft(o client.Object) bool {
	return !o.GetDeletionTimestamp().IsZero() && len(o.GetFinalizers()) == 0
}

// deepCopyOf copies an object, so that the answer of the API server does not replace what the caller holds.
func deepCopyOf[T client.Object](o T) T {
	return o.DeepCopyObject().(T) //nolint:forcetypeassert // a copy is of the same type
}

// newMergePatch makes a merge patch that the API server refuses if the object has another version by now.
func newMergePatch(changed map[string]json.RawMessage, version string) client.Patch {
	var metadata map[string]json.RawMessage
	_ = json.Unmarshal(changed["metadata"], &metadata) // it was made of an object
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	metadata["resourceVersion"], _ = json.Marshal(version) // a string
	changed["metadata"], _ = json.Marshal(metadata)        // as above
	b, _ := json.Marshal(changed)                          // as above
	return client.RawPatch(types.MergePatchType, b)
}
