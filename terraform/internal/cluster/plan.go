package cluster

import (
	"context"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/polder-kaas/polder/terraform/internal/connect"
)

// ModifyPlan lets the plane check what is planned, so that a plan says what an apply would, and plans to wait for a
// cluster that the last apply did not see ready.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.api == nil {
		return // it is deleted, or nothing is known yet
	}
	if !req.State.Raw.IsNull() {
		kept, diags := readMemory(ctx, req.Private)
		resp.Diagnostics.Append(diags...)
		if kept.Unready {
			unknown := types.ObjectUnknown(attributeTypes(statusAttributes()))
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("status"), unknown)...)
		}
	}
	if req.Config.Raw.IsFullyKnown() && !req.Plan.Raw.Equal(req.State.Raw) && !resp.Diagnostics.HasError() {
		r.tryOut(ctx, req, resp)
	}
}

// tryOut asks the plane what it thinks of a plan. Only what it finds wrong with fields counts: all else, such as a
// quota that is used up or a tenant that is not there yet, may be otherwise when the plan is applied.
func (r *Resource) tryOut(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	wanted, err := expand(ctx, &m)
	if err != nil {
		resp.Diagnostics.AddError(cannotMake(&m), err.Error())
		return
	}
	c, summary := r.clustersOf(&m), cannotMake(&m)
	if req.State.Raw.IsNull() {
		_, _, err = c.create(ctx, wanted, "", true)
	} else {
		summary, err = cannotChange(&m), r.tryChange(ctx, req, &m)
	}
	if connect.HasStatus(err, http.StatusUnprocessableEntity) || connect.HasStatus(err, http.StatusBadRequest) {
		resp.Diagnostics.Append(connect.Explain(summary, err, locate)...)
	}
}

func (r *Resource) tryChange(ctx context.Context, req resource.ModifyPlanRequest, m *model) error {
	var was model
	if err := asError(req.State.Get(ctx, &was)); err != nil {
		return err
	}
	if needsAnother(&was, m) {
		return nil // which is planned, and tried out, next
	}
	wanted, err := expand(ctx, m)
	if err != nil {
		return err
	}
	c := r.clustersOf(m)
	o, _, err := c.getSame(ctx, wanted.Name, was.UID.ValueString())
	if err != nil {
		return err
	}
	patch, err := newPatch(o, wanted, &was)
	if err != nil || patch == nil {
		return err
	}
	_, err = c.patch(ctx, wanted.Name, "", patch, true)
	return err
}

// needsAnother says that a plan is one for another cluster. The framework does not tell here what the schema says.
func needsAnother(was, m *model) bool {
	return !was.Tenant.Equal(m.Tenant) || !was.Name.Equal(m.Name) || !was.ProviderName.Equal(m.ProviderName) ||
		!was.Network.Equal(m.Network) || was.Stack != nil && m.Stack != nil && !was.Stack.Name.Equal(m.Stack.Name)
}
