// Package cluster is the resource polder_cluster: a Kubernetes cluster that a tenant asks for.
//
// The plane is the truth. State has what the plane says, and of labels and annotations those that were configured. What
// is left out is chosen by the plane and stays.
package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/polder-kaas/polder/client"
)

// Resource is polder_cluster.
type Resource struct {
	api *client.ClientWithResponses
}

var (
	_ resource.ResourceWithConfigure   = (*Resource)(nil)
	_ resource.ResourceWithImportState = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan  = (*Resource)(nil)
)

// New makes the resource; it knows its plane once it is configured.
func New() resource.Resource { return &Resource{} }

// Metadata names the resource.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster"
}

// Schema describes the resource.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema, resp.Diagnostics = newSchema(ctx)
}

// Configure takes the client of the provider, which is nil before the provider is configured.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	api, ok := req.ProviderData.(*client.ClientWithResponses)
	if !ok {
		resp.Diagnostics.AddError("The provider is not configured", fmt.Sprintf("it gave a %T", req.ProviderData))
		return
	}
	r.api = api
}

func (r *Resource) clustersOf(m *model) clusters { return clusters{r.api, m.Tenant.ValueString()} }

// ImportState takes a cluster that is there, by tenant and name. All else is read.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest,
	resp *resource.ImportStateResponse) {
	tenant, name, ok := strings.Cut(req.ID, "/")
	if !ok || tenant == "" || name == "" || strings.Contains(name, "/") {
		resp.Diagnostics.AddError("This is no cluster", fmt.Sprintf("%q must be TENANT/NAME, such as acme/demo", req.ID))
		return
	}
	for attribute, v := range map[string]string{"id": req.ID, "tenant": tenant, "name": name} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(attribute), v)...)
	}
}
