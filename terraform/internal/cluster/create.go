package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/terraform/internal/connect"
)

const (
	createTimeout = 30 * time.Minute
	// maxAge is how old a cluster may be that an earlier run has made and not written down, because it was killed. An older one
	// may be somebody else's who has written the same.
	maxAge = time.Hour
)

// Create makes a cluster and waits until it is ready. If that is not seen, it is a warning: of an error Terraform would
// conclude that the cluster is worth nothing, and replace it.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	timeout, diags := m.Timeouts.Create(ctx, createTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	wanted, err := expand(ctx, &m)
	if err != nil {
		resp.Diagnostics.AddError(cannotMake(&m), err.Error())
		return
	}
	c := r.clustersOf(&m)
	o, age, err := c.create(ctx, wanted, idempotencyKey(c.tenant, wanted), false)
	switch {
	case connect.HasStatus(err, http.StatusConflict):
		resp.Diagnostics.AddError(cannotMake(&m), fmt.Sprintf("%s. To manage the cluster that is there, import it as %s/%s.", err, c.tenant, wanted.Name))
		return
	case err != nil:
		resp.Diagnostics.Append(connect.Explain(cannotMake(&m), err, locate)...)
		return
	case age > maxAge:
		resp.Diagnostics.AddError(cannotMake(&m), fmt.Sprintf("a cluster just like it was made %s ago and is in no state here. If it is yours to manage, import it as %s/%s.",
			age.Round(time.Minute), c.tenant, wanted.Name))
		return
	}
	// From here on there is a cluster, which must not be forgotten.
	o, err = c.awaitReady(ctx, o, timeout)
	kept := memory{Generation: o.Generation, Unready: err != nil}
	resp.Diagnostics.Append(kept.write(ctx, resp.Private)...)
	if ferr := flatten(ctx, &m, o); ferr != nil {
		resp.Diagnostics.AddWarning("The cluster was made, and cannot be read", ferr.Error())
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if err != nil {
		resp.Diagnostics.AddWarning(fmt.Sprintf("Cluster %s/%s was made, and is not ready", c.tenant, o.Name), explainUnready(err))
	}
}

// explainUnready says why a cluster is not ready, and what becomes of it.
func explainUnready(err error) string {
	if errors.Is(err, errNotReady) {
		return err.Error() + ". It stays in the state; the next apply waits for it again."
	}
	return err.Error() + ". How it is was not seen; it stays in the state, and the next apply waits for it again."
}

func cannotMake(m *model) string {
	return fmt.Sprintf("Cluster %s/%s cannot be made", m.Tenant.ValueString(), m.Name.ValueString())
}

// idempotencyKey is the same for the same cluster, so that a run that was killed is followed by one that finds what the
// first has made.
func idempotencyKey(tenant string, o *v1alpha1.WorkloadCluster) string {
	b, _ := json.Marshal(o) // it is sent as JSON anyway
	sum := sha256.Sum256(append([]byte("terraform "+tenant+"\n"), b...))
	return "terraform-" + hex.EncodeToString(sum[:])
}
