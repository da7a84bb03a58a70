package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/polder-kaas/polder/terraform/internal/connect"
)

// Read writes down how the cluster is. One that is gone is forgotten; another one of its name is not taken for it.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	kept, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	summary := fmt.Sprintf("Cluster %s/%s cannot be read", m.Tenant.ValueString(), m.Name.ValueString())
	o, _, err := r.clustersOf(&m).get(ctx, m.Name.ValueString())
	switch {
	case errors.Is(err, errGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		resp.Diagnostics.Append(connect.Explain(summary, err, locate)...)
		return
	case m.UID.ValueString() != "" && m.UID.ValueString() != string(o.UID):
		resp.Diagnostics.AddWarning(fmt.Sprintf("Cluster %s is gone, and another has its name", m.ID.ValueString()),
			fmt.Sprintf("It was made at %s by somebody else, and is not touched. To manage it, import it as %s.", o.CreationTimestamp.UTC(), m.ID.ValueString()))
		resp.State.RemoveResource(ctx)
		return
	}
	settled, _ := judge(o)
	kept = memory{Generation: o.Generation, Unready: kept.Unready && !settled}
	resp.Diagnostics.Append(kept.write(ctx, resp.Private)...)
	if err := flatten(ctx, &m, o); err != nil {
		resp.Diagnostics.AddError(summary, err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
