package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write stores what a reconciliation has changed: metadata and spec in one request, then the status
// in another, and nothing if nothing changed. Whoever calls it must be the only writer of the
// status, since lists, conditions too, are replaced as a whole.
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
	if len(changed) > 0 {
		if err := c.Patch(ctx, copied(after), merge(changed)); err != nil {
			return err
		}
	}
	if !hasStatus {
		return nil
	}
	return c.Status().Patch(ctx, copied(after), merge(map[string]json.RawMessage{"status": status}))
}

// copied keeps the answer of the API server from replacing what the caller holds.
func copied(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) } //nolint:forcetypeassert // a copy is of the same type

func merge(changed map[string]json.RawMessage) client.Patch {
	b, _ := json.Marshal(changed) // it was read from JSON
	return client.RawPatch(types.MergePatchType, b)
}
