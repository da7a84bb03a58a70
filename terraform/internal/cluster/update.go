package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/terraform/internal/connect"
)

const updateTimeout = time.Hour

// errChanged says that somebody changed the spec since the plan was made.
var errChanged = errors.New("somebody has changed it since this plan was made, and nothing was done: plan again, and see what becomes of both changes")

// Update changes a cluster in place, and waits until it is as it should be.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, was model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &was)...)
	kept, diags := readMemory(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	timeout, diags := m.Timeouts.Update(ctx, updateTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		resp.State.Raw = req.State.Raw
		return
	}
	c := r.clustersOf(&m)
	o, err := c.change(ctx, &m, &was, kept.Generation)
	if err != nil {
		resp.State.Raw = req.State.Raw // nothing was changed
		resp.Diagnostics.Append(connect.Explain(cannotChange(&m), err, locate)...)
		return
	}
	o, err = c.awaitReady(ctx, o, timeout)
	kept = memory{Generation: o.Generation, Unready: err != nil}
	resp.Diagnostics.Append(kept.write(ctx, resp.Private)...)
	planned := m.Endpoint
	if err := flatten(ctx, &m, o); err != nil {
		resp.Diagnostics.AddError(cannotChange(&m), err.Error())
		return
	}
	if !planned.IsUnknown() {
		m.Endpoint = planned // a new one is seen when it is read again
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Cluster %s was changed, and is not ready", m.ID.ValueString()), explainUnready(err))
	}
}

func cannotChange(m *model) string {
	return fmt.Sprintf("Cluster %s/%s cannot be changed", m.Tenant.ValueString(), m.Name.ValueString())
}

// change writes what is planned. Its version is checked with each try; what changes it meanwhile is mostly its status. A
// spec that is not the one the plan was made for is left alone, unless it is what was planned.
func (c clusters) change(ctx context.Context, m, was *model, generation int64) (*v1alpha1.WorkloadCluster, error) {
	wanted, err := expand(ctx, m)
	if err != nil {
		return nil, err
	}
	const tries = 20
	for range tries {
		o, tag, err := c.getSame(ctx, wanted.Name, was.UID.ValueString())
		if err != nil {
			return nil, err
		}
		patch, err := newPatch(o, wanted, was)
		if err != nil || patch == nil {
			return o, err
		}
		if patch["spec"] != nil && generation != 0 && o.Generation != generation {
			return nil, errChanged
		}
		o, err = c.patch(ctx, wanted.Name, tag, patch, false)
		if !connect.HasStatus(err, http.StatusPreconditionFailed) {
			return o, err
		}
	}
	return nil, fmt.Errorf("it is changed all the time: %d tries came too late", tries)
}
