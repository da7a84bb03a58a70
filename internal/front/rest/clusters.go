package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

var clusterResource = v1alpha1.GroupVersion.WithResource("workloadclusters")

// TenantPath names a tenant.
type TenantPath struct {
	Tenant string `path:"tenant" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Name of the tenant." example:"acme"`
}

// ClusterPath names a cluster.
type ClusterPath struct {
	TenantPath
	Cluster string `path:"cluster" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Name of the cluster." example:"demo"`
}

// DryRunQuery asks what would be.
type DryRunQuery struct {
	DryRun bool `query:"dryRun" doc:"Check it, and change nothing."`
}

func (d DryRunQuery) options() []string {
	if d.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// clusterOutput is a cluster as an answer.
type clusterOutput struct {
	Status   int
	ETag     string `header:"ETag" doc:"The version of the object, for If-Match."`
	Location string `header:"Location" doc:"Of what was made: its path."`
	Warning  string `header:"Warning" doc:"What the plane warns of, for example of a field that is not needed any more."`
	Body     clusterObject
}

func newClusterOutput(ctx context.Context, u *unstructured.Unstructured, status int) *clusterOutput {
	return &clusterOutput{Status: status, ETag: eTag(u), Warning: callerOf(ctx).warningHeader(), Body: present(u)}
}

// operation is one of clusters.
func operation(id, method, path, tag, summary string, codes ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: Prefix + path, Tags: []string{tag}, Summary: summary, MaxBodyBytes: MaxBody,
		BodyReadTimeout: bodyTimeout,
		Errors: append(codes, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
			http.StatusTooManyRequests),
	}
}

const (
	clustersPath       = "/tenants/{tenant}/clusters"
	clusterPathPattern = clustersPath + "/{cluster}"
	tagClusters        = "Clusters"
)

func registerClusters(a *API) error {
	huma.Register(a.huma, operation("list-clusters", http.MethodGet, clustersPath, tagClusters,
		"List clusters of a tenant"), a.listClusters)
	huma.Register(a.huma, operation("get-cluster", http.MethodGet, clusterPathPattern, tagClusters, "Read a cluster"),
		a.getCluster)

	create := operation("create-cluster", http.MethodPost, clustersPath, tagClusters, "Make a cluster", http.StatusBadRequest,
		http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity)
	create.DefaultStatus, create.RequestBody = http.StatusCreated, &huma.RequestBody{}
	create.Description = "The body is cluster-values.yaml, as polder apply and kubectl apply take it. The answer comes at " +
		"once; status of the cluster says how far it is."
	huma.Register(a.huma, create, a.createCluster)

	put := operation("put-cluster", http.MethodPut, clusterPathPattern, tagClusters,
		"Replace a cluster's file, or make the cluster", http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	put.RequestBody = &huma.RequestBody{}
	put.Description = "spec, labels and annotations become what the body says: what it leaves out goes, or has its default."
	huma.Register(a.huma, put, a.putCluster)

	patch := operation("patch-cluster", http.MethodPatch, clusterPathPattern, tagClusters, "Change fields of a cluster",
		http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	patch.RequestBody = &huma.RequestBody{}
	patch.Description = "The body is a JSON merge patch (RFC 7396)."
	huma.Register(a.huma, patch, a.patchCluster)

	del := operation("delete-cluster", http.MethodDelete, clusterPathPattern, tagClusters, "Delete a cluster",
		http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity)
	del.DefaultStatus = http.StatusAccepted
	del.Description = "It is gone when it is not found any more; until then its status says what is being deleted."
	huma.Register(a.huma, del, a.deleteCluster)

	a.documentFurtherAnswers()
	schema := kindSchema(a.huma.OpenAPI().Components.Schemas, "WorkloadCluster")
	a.setBodySchema(create.RequestBody, schema, typeYAML, typeJSON)
	a.setBodySchema(put.RequestBody, schema, typeYAML, typeJSON)
	a.setBodySchema(patch.RequestBody, &huma.Schema{
		Type: huma.TypeObject, Description: "Fields that change; null takes one out.",
	}, typeMergePatch)
	return nil
}

// documentFurtherAnswers says what is answered beside what huma knows of: one status of success for each operation.
func (a *API) documentFurtherAnswers() {
	path := a.huma.OpenAPI().Paths[Prefix+clusterPathPattern]
	made := *path.Put.Responses["200"]
	made.Description = http.StatusText(http.StatusCreated)
	path.Put.Responses["201"] = &made
	path.Get.Responses["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
}

// clusters is the plane's API for those of a namespace.
func (a *API) clusters(namespace string) dynamic.ResourceInterface {
	return a.client.Resource(clusterResource).Namespace(namespace)
}

func (a *API) listClusters(ctx context.Context, in *struct {
	TenantPath
	Page
}) (*list[clusterObject], error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	l, err := listObjects[clusterObject](ctx, a, clusterResource, namespace, in.Page)
	if err != nil {
		return nil, a.explainIn(ctx, in.Tenant, err)
	}
	return l, nil
}

func (a *API) getCluster(ctx context.Context, in *struct {
	ClusterPath
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"An ETag: if the cluster still has it, the answer is 304 without a body."`
}) (*clusterOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	u, err := a.readCluster(ctx, in.Tenant, in.Cluster)
	if err != nil {
		return nil, err
	}
	if in.IfNoneMatch != "" && in.IfNoneMatch == eTag(u) {
		return &clusterOutput{Status: http.StatusNotModified, ETag: eTag(u)}, nil
	}
	return newClusterOutput(ctx, u, http.StatusOK), nil
}

// readCluster reads one cluster with the rights of the caller.
func (a *API) readCluster(ctx context.Context, tenant, name string) (*unstructured.Unstructured, error) {
	namespace, err := a.namespaceOf(ctx, tenant)
	if err != nil {
		return nil, err
	}
	u, err := a.clusters(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, a.explainCluster(ctx, tenant, name, err)
	}
	return u, nil
}

func (a *API) createCluster(ctx context.Context, in *struct {
	TenantPath
	DryRunQuery
	ObjectBody
	IdempotencyKey string `header:"Idempotency-Key" minLength:"1" maxLength:"255" doc:"A text of your own, new for each cluster: if the same request comes again with it, the answer is the cluster that was made, not a second one or an error."`
}) (*clusterOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	object, err := in.decode()
	if err != nil {
		return nil, err
	}
	cluster, err := newCluster(object, namespace, "")
	if err != nil {
		return nil, err
	}
	cluster.SetResourceVersion("")
	mark := idempotencyMark(in.IdempotencyKey, object)
	setAnnotation(cluster, v1alpha1.IdempotencyAnnotation, mark)
	made, err := a.createOnce(ctx, namespace, cluster, mark, in.options())
	if err != nil {
		return nil, a.explainCluster(ctx, in.Tenant, cluster.GetName(), err)
	}
	out := newClusterOutput(ctx, made, http.StatusCreated)
	out.Location = Prefix + "/tenants/" + in.Tenant + "/clusters/" + made.GetName()
	return out, nil
}

// idempotencyMark is what is kept of a key: nothing that could be used again, and of which request it was.
func idempotencyMark(key string, object map[string]any) string {
	if key == "" {
		return ""
	}
	b, _ := json.Marshal(object) // it was decoded from JSON
	k, o := sha256.Sum256([]byte(key)), sha256.Sum256(b)
	return hex.EncodeToString(k[:16]) + "." + hex.EncodeToString(o[:16])
}

func setAnnotation(u *unstructured.Unstructured, name, value string) {
	all := u.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	delete(all, name) // it is not the caller's
	if value != "" {
		all[name] = value
	}
	u.SetAnnotations(all)
}

// createOnce makes a cluster, or returns the one that the same request has made before. It looks before it tries: what
// the plane refuses because it is there already counts against the quota for a moment.
func (a *API) createOnce(ctx context.Context, namespace string, cluster *unstructured.Unstructured, mark string,
	dryRun []string) (*unstructured.Unstructured, error) {
	if mark != "" {
		if u, err := a.findCreated(ctx, namespace, cluster.GetName(), mark); u != nil || err != nil {
			return u, err
		}
	}
	made, err := writeCounted(ctx, func() (*unstructured.Unstructured, error) {
		return a.clusters(namespace).Create(ctx, cluster, metav1.CreateOptions{
			FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
		})
	})
	if apierrors.IsAlreadyExists(err) && mark != "" {
		if u, ferr := a.findCreated(ctx, namespace, cluster.GetName(), mark); u != nil || ferr != nil {
			return u, ferr
		}
	}
	return made, err
}

// findCreated returns the cluster that a request has made, or nil if there is none, or one that another has made.
func (a *API) findCreated(ctx context.Context, namespace, name, mark string) (*unstructured.Unstructured, error) {
	u, err := a.clusters(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, apierror.IgnoreObjectNotFound(err, clusterResource.Resource, name)
	}
	const keyLength = 32
	was := u.GetAnnotations()[v1alpha1.IdempotencyAnnotation]
	switch {
	case was == mark:
		return u, nil
	case len(was) > keyLength && was[:keyLength] == mark[:keyLength]:
		return nil, problemf(http.StatusUnprocessableEntity,
			"this Idempotency-Key has made cluster %s of another body; use a new key for each cluster", name)
	}
	return nil, nil
}

func (a *API) deleteCluster(ctx context.Context, in *struct {
	ClusterPath
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"The ETag that the cluster must have."`
	UID     string `query:"uid" maxLength:"64" doc:"The uid that the cluster must have: no later one of its name is deleted."`
	DryRunQuery
}) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	version, err := Preconditions{IfMatch: in.IfMatch}.version()
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	o := metav1.DeleteOptions{DryRun: in.options()}
	if version != "" || in.UID != "" {
		o.Preconditions = &metav1.Preconditions{}
	}
	if version != "" {
		o.Preconditions.ResourceVersion = ptr.To(version)
	}
	if in.UID != "" {
		o.Preconditions.UID = ptr.To(types.UID(in.UID))
	}
	err = a.clusters(namespace).Delete(ctx, in.Cluster, o)
	if apierrors.IsConflict(err) && o.Preconditions != nil {
		err = changedMeanwhile("cluster " + in.Cluster)
	}
	return nil, a.explainCluster(ctx, in.Tenant, in.Cluster, err)
}
