package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/terraform/internal/connect"
)

// clusters asks a plane for those of one tenant.
type clusters struct {
	api    *client.ClientWithResponses
	tenant string
}

// errGone says that a cluster is not there, or that another has its name.
var errGone = errors.New("there is no such cluster")

// get reads a cluster and its version. A tenant that the token does not see any more is no cluster that is gone: what
// is not seen must not be forgotten.
func (c clusters) get(ctx context.Context, name string) (*v1alpha1.WorkloadCluster, string, error) {
	res, err := c.api.GetClusterWithResponse(ctx, c.tenant, name, &client.GetClusterParams{})
	if err != nil {
		return nil, "", err
	}
	err = connect.Refusal(res.HTTPResponse, res.Body, nil)
	if connect.HasStatus(err, http.StatusNotFound) {
		t, terr := c.api.GetTenantWithResponse(ctx, c.tenant)
		if terr != nil {
			return nil, "", terr
		}
		if terr = connect.Refusal(t.HTTPResponse, t.Body, nil); terr != nil {
			return nil, "", terr
		}
		return nil, "", errGone
	}
	if err != nil {
		return nil, "", err
	}
	if res.JSON200 == nil {
		return nil, "", unexpected(res.HTTPResponse)
	}
	return res.JSON200, res.HTTPResponse.Header.Get("ETag"), nil
}

// getSame reads the cluster with a uid; one of its name that was made later is none.
func (c clusters) getSame(ctx context.Context, name, uid string) (*v1alpha1.WorkloadCluster, string, error) {
	o, tag, err := c.get(ctx, name)
	if err == nil && uid != "" && string(o.UID) != uid {
		return nil, "", errGone
	}
	return o, tag, err
}

// create makes a cluster. The second result is how old it was when it was answered: the same request may have made it
// before.
func (c clusters) create(ctx context.Context, o *v1alpha1.WorkloadCluster, key string,
	dryRun bool) (*v1alpha1.WorkloadCluster, time.Duration, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, 0, fmt.Errorf("writing the cluster: %w", err)
	}
	params := &client.CreateClusterParams{IdempotencyKey: key, DryRun: dryRun}
	res, err := c.api.CreateClusterWithBodyWithResponse(ctx, c.tenant, params, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	if err := connect.Refusal(res.HTTPResponse, res.Body, nil); err != nil {
		return nil, 0, err
	}
	if res.JSON201 == nil {
		return nil, 0, unexpected(res.HTTPResponse)
	}
	age := time.Duration(0)
	now, err := http.ParseTime(res.HTTPResponse.Header.Get("Date")) // by the plane's clock, as the other
	if made := res.JSON201.CreationTimestamp; err == nil && !made.IsZero() {
		age = now.Sub(made.Time)
	}
	return res.JSON201, age, nil
}

// patch changes the cluster that has a version; if it was changed meanwhile, the plane refuses with 412.
func (c clusters) patch(ctx context.Context, name, tag string, patch map[string]any,
	dryRun bool) (*v1alpha1.WorkloadCluster, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing the change: %w", err)
	}
	params := &client.PatchClusterParams{IfMatch: tag, DryRun: dryRun}
	res, err := c.api.PatchClusterWithBodyWithResponse(ctx, c.tenant, name, params, "application/merge-patch+json",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if err := connect.Refusal(res.HTTPResponse, res.Body, nil); err != nil {
		return nil, err
	}
	if res.JSON200 == nil {
		return nil, unexpected(res.HTTPResponse)
	}
	return res.JSON200, nil
}

// delete asks for the end of the cluster with a uid. One that is gone is no error.
func (c clusters) delete(ctx context.Context, name, uid string) error {
	res, err := c.api.DeleteClusterWithResponse(ctx, c.tenant, name, &client.DeleteClusterParams{Uid: uid})
	if err != nil {
		return err
	}
	err = connect.Refusal(res.HTTPResponse, res.Body, nil)
	if connect.HasStatus(err, http.StatusNotFound) || connect.HasStatus(err, http.StatusPreconditionFailed) {
		return nil // whoever waits for the end finds out which it was
	}
	return err
}

func unexpected(res *http.Response) error {
	return fmt.Errorf("%s: the answer is none of this API; is the endpoint right?", res.Status)
}
