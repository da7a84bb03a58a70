package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
)

// maxPatchAttempts is how often a change is tried: the status of a cluster that is being made changes every second.
const maxPatchAttempts = 5

// patchSpec writes into the spec of a cluster what how says; an empty patch of it writes nothing. Whoever changed the
// spec in between wins, and this fails; a change of the status alone does no harm.
func patchSpec(ctx context.Context, a *connect.Access, name string,
	buildPatch func(c *v1alpha1.WorkloadCluster, u *unstructured.Unstructured) (spec map[string]any,
		err error)) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	doing := fmt.Sprintf("changing cluster %q", name)
	generation := int64(-1)
	for attempt := 1; ; attempt++ {
		u, err := clusterClient(a).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, explainError(a, doing, name, err)
		}
		if generation >= 0 && u.GetGeneration() != generation {
			return false, fmt.Errorf("%s: somebody else changed it at the same time; look at it and try again", doing)
		}
		generation = u.GetGeneration()
		c, err := objects.FromUnstructured[v1alpha1.WorkloadCluster](u)
		if err != nil {
			return false, err
		}
		spec, err := buildPatch(c, u)
		if err != nil || len(spec) == 0 {
			return false, err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "uid": u.GetUID()}, "spec": spec,
		})
		if err != nil {
			return false, err
		}
		_, err = clusterClient(a).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{
			FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict,
		})
		if apierrors.IsConflict(err) && attempt < maxPatchAttempts {
			continue
		}
		return err == nil, explainError(a, doing, name, err)
	}
}
