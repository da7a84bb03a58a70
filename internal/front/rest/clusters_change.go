package rest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

func (a *API) putCluster(ctx context.Context, in *struct {
	ClusterPath
	Preconditions
	DryRunQuery
	ObjectBody
}) (*clusterOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	object, err := in.decode()
	if err != nil {
		return nil, err
	}
	wanted, err := newCluster(object, namespace, in.Cluster)
	if err != nil {
		return nil, err
	}
	if v := wanted.GetResourceVersion(); v != "" && version == "" {
		version = v // of the file, which somebody has read and changed
	}
	wanted.SetResourceVersion("")
	const tries = 10
	for i := range tries {
		u, status, err := a.put(ctx, namespace, wanted, version, in.Preconditions, in.options())
		if apierrors.IsConflict(err) && i < tries-1 || apierrors.IsAlreadyExists(err) && !in.mustNotExist() && i < tries-1 {
			continue // it changed between our reading and our writing
		}
		if err != nil {
			return nil, a.explainCluster(ctx, in.Tenant, in.Cluster, err)
		}
		return newClusterOutput(ctx, u, status), nil
	}
	return nil, changedMeanwhile("cluster " + in.Cluster)
}

// put reads the cluster as it is and writes it as it is wanted, once.
func (a *API) put(ctx context.Context, namespace string, wanted *unstructured.Unstructured, version string,
	p Preconditions, dryRun []string) (*unstructured.Unstructured, int, error) {
	what := "cluster " + wanted.GetName()
	was, err := a.clusters(namespace).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierror.IsObjectNotFound(err, clusterResource.Resource, wanted.GetName()) && (p.mustExist() || version != ""):
		return nil, 0, problemf(http.StatusPreconditionFailed, "there is no %s any more", what)
	case apierror.IsObjectNotFound(err, clusterResource.Resource, wanted.GetName()):
		made := wanted.DeepCopy()
		setAnnotation(made, v1alpha1.IdempotencyAnnotation, "")
		u, err := a.clusters(namespace).Create(ctx, made, metav1.CreateOptions{
			FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
		})
		return u, http.StatusCreated, err
	case err != nil:
		return nil, 0, err
	case p.mustNotExist():
		return nil, 0, problemf(http.StatusPreconditionFailed, "there is a %s already", what)
	case version != "" && version != was.GetResourceVersion():
		return nil, 0, changedMeanwhile(what)
	}
	u, err := a.clusters(namespace).Update(ctx, replaced(was, wanted), metav1.UpdateOptions{
		FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	if apierrors.IsConflict(err) && version != "" && !isQuotaConflict(err) {
		return nil, 0, changedMeanwhile(what)
	}
	return u, http.StatusOK, err
}

// replaced is the cluster that was there with what is wanted: all that customers write, and nothing else, is of the
// latter.
func replaced(was, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	out := wanted.DeepCopy()
	meta, _ := was.Object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	delete(meta, "managedFields") // the plane keeps them itself
	out.Object["metadata"] = meta
	out.SetLabels(wanted.GetLabels())
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, name := range hiddenAnnotations {
		delete(annotations, name)
		if v, ok := was.GetAnnotations()[name]; ok {
			annotations[name] = v
		}
	}
	out.SetAnnotations(annotations)
	return out
}

func (a *API) patchCluster(ctx context.Context, in *struct {
	ClusterPath
	Preconditions
	DryRunQuery
	ObjectBody
}) (*clusterOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	if _, err := in.mediaType(typeMergePatch, typeJSON); err != nil {
		return nil, err
	}
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	patch, err := decodeObject(in.RawBody)
	if err != nil {
		return nil, err
	}
	if err := restrictPatch(patch, in.Cluster, version); err != nil {
		return nil, err
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	u, err := writeCounted(ctx, func() (*unstructured.Unstructured, error) {
		return a.clusters(namespace).Patch(ctx, in.Cluster, types.MergePatchType, data, metav1.PatchOptions{
			FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: in.options(),
		})
	})
	if apierrors.IsConflict(err) && version != "" && !isQuotaConflict(err) {
		err = changedMeanwhile("cluster " + in.Cluster)
	}
	if err != nil {
		return nil, a.explainCluster(ctx, in.Tenant, in.Cluster, err)
	}
	return newClusterOutput(ctx, u, http.StatusOK), nil
}

// restrictPatch lets a patch change what PUT could, and gives it the version that it is for.
func restrictPatch(patch map[string]any, cluster, version string) error {
	for name := range patch {
		if name != "metadata" && name != "spec" && name != "apiVersion" && name != "kind" {
			return fieldProblem(name, "only spec, and labels and annotations in metadata, can be changed")
		}
	}
	meta, ok := patch["metadata"].(map[string]any)
	if _, given := patch["metadata"]; given && !ok {
		return fieldProblem("metadata", "it is no object")
	}
	for name := range meta {
		if name != "labels" && name != "annotations" && name != "resourceVersion" {
			return fieldProblem("metadata."+name, "only labels and annotations can be changed")
		}
	}
	if version != "" {
		if meta == nil {
			meta = map[string]any{}
		}
		meta["resourceVersion"], patch["metadata"] = version, meta
	}
	v, given := meta["resourceVersion"]
	text, isText := v.(string)
	switch {
	case given && !isText:
		return fieldProblem("metadata.resourceVersion", "it is no text")
	case given && !versionPattern.MatchString(text):
		return changedMeanwhile("cluster " + cluster) // it has never been of this version
	}
	return nil
}

// versionPattern is how the plane writes versions. It fails at others instead of finding that they are not the current
// one.
var versionPattern = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
