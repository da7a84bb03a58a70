package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/front/planeapi"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/quota/counted"
)

var tenantResource = v1alpha1.GroupVersion.WithResource("tenants")

const (
	tenantsPath       = "/tenants"
	tenantPathPattern = "/tenants/{tenant}"
	tagTenants        = "Tenants"
)

// namespaceOf returns the namespace of a tenant. It says nothing of whether the caller may see it: what follows does.
func (a *API) namespaceOf(ctx context.Context, tenant string) (string, error) {
	if ns := a.cfg.Namespace(tenant); ns != "" {
		return ns, nil
	}
	// It may have been made just now. To somebody who may not see it this takes as long as to be refused does.
	if _, err := a.getTenantObject(ctx, tenant); err != nil && !apierrors.IsForbidden(err) {
		return "", explainTenant(tenant, err)
	}
	u, err := a.getTenantObject(ctx, tenant)
	if err != nil {
		return "", explainTenant(tenant, err)
	}
	t := &v1alpha1.Tenant{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return "", fmt.Errorf("reading tenant %s: %w", tenant, err)
	}
	return t.NamespaceName(), nil
}

func (a *API) getTenantObject(ctx context.Context, tenant string) (*unstructured.Unstructured, error) {
	return a.client.Resource(tenantResource).Get(ctx, tenant, metav1.GetOptions{})
}

// explainTenant says the same of a tenant that there is not and of one that the caller may not see.
func explainTenant(tenant string, err error) error {
	if apierrors.IsForbidden(err) || apierror.IsObjectNotFound(err, tenantResource.Resource, tenant) {
		p := problemf(http.StatusNotFound, "there is no tenant %s, or you do not belong to it", tenant)
		p.Reason = string(metav1.StatusReasonNotFound)
		return p
	}
	return explain(err)
}

// explainIn explains what the plane said of something in a tenant. To those who do not belong to it, there is none.
func (a *API) explainIn(ctx context.Context, tenant string, err error) error {
	if apierrors.IsForbidden(err) {
		if _, terr := a.getTenantObject(ctx, tenant); terr != nil {
			return explainTenant(tenant, terr)
		}
	}
	return explain(err)
}

// explainCluster is explainIn for one cluster.
func (a *API) explainCluster(ctx context.Context, tenant, name string, err error) error {
	if apierror.IsObjectNotFound(err, clusterResource.Resource, name) {
		p := problemf(http.StatusNotFound, "there is no cluster %s in tenant %s", name, tenant)
		p.Reason = string(metav1.StatusReasonNotFound)
		return p
	}
	return a.explainIn(ctx, tenant, err)
}

// Self is who somebody is.
type Self struct {
	Username string   `json:"username" doc:"The name that the plane knows you under."`
	Groups   []string `json:"groups" nullable:"false" doc:"The groups that you belong to."`
}

func registerSelf(a *API) error {
	huma.Register(a.huma, operation("get-self", http.MethodGet, "/me", "Self", "Who you are"),
		func(ctx context.Context, _ *struct{}) (*struct{ Body Self }, error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			u, err := a.reviewSelf(ctx)
			if err != nil {
				return nil, explain(err)
			}
			out := &struct{ Body Self }{Body: Self{Groups: []string{}}}
			out.Body.Username, _, _ = unstructured.NestedString(u.Object, "status", "userInfo", "username")
			if groups, _, _ := unstructured.NestedStringSlice(u.Object, "status", "userInfo", "groups"); groups != nil {
				out.Body.Groups = groups
			}
			return out, nil
		})
	return nil
}

// reviewSelf asks the plane who the caller is.
func (a *API) reviewSelf(ctx context.Context) (*unstructured.Unstructured, error) {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "SelfSubjectReview",
	}}
	return a.client.Resource(authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")).
		Create(ctx, review, metav1.CreateOptions{})
}

// getPath asks the plane for a path of its own, with the rights of the caller.
func (a *API) getPath(ctx context.Context, path string, query url.Values, out any) error {
	u := url.URL{Scheme: "https", Host: "plane", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", typeJSON)
	res, err := passThrough{a.cfg.Plane}.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode == http.StatusOK {
		return json.NewDecoder(res.Body).Decode(out)
	}
	var s metav1.Status
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil || s.Kind != "Status" {
		p := problemf(res.StatusCode, "the plane says: %s", http.StatusText(res.StatusCode))
		if after := res.Header.Get("Retry-After"); after != "" {
			p.header = http.Header{"Retry-After": {after}}
		}
		return p
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func registerTenants(a *API) error {
	huma.Register(a.huma, operation("list-tenants", http.MethodGet, tenantsPath, tagTenants, "List the tenants that you belong to"),
		func(ctx context.Context, in *Page) (*list[tenantObject], error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			// Whoever may see all of them does.
			l, err := listObjects[tenantObject](ctx, a, tenantResource, "", *in)
			if !apierrors.IsForbidden(err) {
				return l, explain(err)
			}
			var own struct {
				Items    []rawObject `json:"items"`
				Continue string      `json:"continue"`
			}
			if err := a.getPath(ctx, planepath.Tenants, in.query(), &own); err != nil {
				return nil, explain(err)
			}
			return newList[tenantObject](own.Items, own.Continue)
		})
	huma.Register(a.huma, operation("get-tenant", http.MethodGet, tenantPathPattern, tagTenants, "Read a tenant"),
		func(ctx context.Context, in *TenantPath) (*tenantOutput, error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			u, err := a.getTenantObject(ctx, in.Tenant)
			if err != nil {
				return nil, explainTenant(in.Tenant, err)
			}
			return &tenantOutput{ETag: eTag(u), Body: present(u)}, nil
		})
	huma.Register(a.huma, operation("get-quota", http.MethodGet, tenantPathPattern+"/quota", tagTenants, "What a tenant may have, and what it uses"),
		a.getQuota)
	huma.Register(a.huma, operation("list-audit", http.MethodGet, tenantPathPattern+"/audit", tagTenants,
		"Who did what in a tenant; for its admins"), a.listAudit)
	return nil
}

// tenantOutput is a tenant as an answer.
type tenantOutput struct {
	ETag string `header:"ETag" doc:"The version of the tenant."`
	Body tenantObject
}

// QuotaItem is one thing that is counted.
type QuotaItem struct {
	Name  string `json:"name" doc:"What is counted." example:"machines"`
	Limit string `json:"limit" doc:"How much there may be." example:"60"`
	Used  string `json:"used" doc:"How much there is." example:"12"`
}

func (a *API) getQuota(ctx context.Context, in *TenantPath) (*list[QuotaItem], error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	u, err := a.client.Resource(corev1.SchemeGroupVersion.WithResource("resourcequotas")).Namespace(namespace).
		Get(ctx, v1alpha1.TenantQuotaName, metav1.GetOptions{})
	if apierror.IsObjectNotFound(err, "resourcequotas", v1alpha1.TenantQuotaName) {
		return nil, newProblem(http.StatusNotFound, "nothing is counted for this tenant yet")
	}
	if err != nil {
		return nil, a.explainIn(ctx, in.Tenant, err)
	}
	hard, _, _ := unstructured.NestedStringMap(u.Object, "status", "hard")
	used, _, _ := unstructured.NestedStringMap(u.Object, "status", "used")
	out := &list[QuotaItem]{}
	out.Body.Items = []QuotaItem{}
	for _, name := range counted.All() {
		if limit, ok := hard[string(name)]; ok {
			out.Body.Items = append(out.Body.Items, QuotaItem{
				Name: counted.Field(name), Limit: limit, Used: cmp.Or(used[string(name)], "0"),
			})
		}
	}
	return out, nil
}

// auditOutput is the record of a tenant.
type auditOutput struct {
	Body struct {
		Items     []AuditEvent `json:"items" nullable:"false"`
		Truncated bool         `json:"truncated,omitempty" doc:"Older ones were not looked for: the record is large."`
	}
}

// AuditEvent is one request that somebody made.
type AuditEvent = planeapi.AuditEvent

func (a *API) listAudit(ctx context.Context, in *struct {
	TenantPath
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most, the newest first."`
}) (*auditOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	if _, err := a.namespaceOf(ctx, in.Tenant); err != nil {
		return nil, err
	}
	out := &auditOutput{}
	err := a.getPath(ctx, planepath.Audit+in.Tenant, url.Values{"limit": {fmt.Sprint(in.Limit)}}, &out.Body)
	if apierrors.IsForbidden(err) {
		if _, err := a.getTenantObject(ctx, in.Tenant); err != nil {
			return nil, explainTenant(in.Tenant, err)
		}
		return nil, newProblem(http.StatusForbidden, "only admins of the tenant may read who did what in it")
	}
	if err != nil {
		return nil, explain(err)
	}
	return out, nil
}
