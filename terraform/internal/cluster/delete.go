package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/polder-kaas/polder/terraform/internal/connect"
)

const deleteTimeout = 30 * time.Minute

// Delete deletes the cluster that was made, never another of its name, and waits until it is gone.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m model
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	timeout, diags := m.Timeouts.Delete(ctx, deleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	summary := fmt.Sprintf("Cluster %s cannot be deleted", m.ID.ValueString())
	c := r.clustersOf(&m)
	o, _, err := c.getSame(ctx, m.Name.ValueString(), m.UID.ValueString())
	if errors.Is(err, errGone) {
		return
	}
	if err == nil {
		err = c.delete(ctx, o.Name, string(o.UID))
	}
	if err != nil {
		resp.Diagnostics.Append(connect.Explain(summary, err, locate)...)
		return
	}
	if err := c.awaitGone(ctx, o, timeout); err != nil {
		resp.Diagnostics.Append(connect.Explain(fmt.Sprintf("Cluster %s is being deleted, and not gone", m.ID.ValueString()), err, locate)...)
	}
}
