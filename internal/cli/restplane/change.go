package restplane

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/polder-kaas/polder/client"
)

func (c *call) patchCluster(ctx context.Context) (any, error) {
	switch c.patchType {
	case string(types.ApplyPatchType):
		return c.applyCluster(ctx)
	case string(types.MergePatchType):
		return c.mergeIntoCluster(ctx)
	}
	return nil, c.noCounterpart("")
}

// applyCluster makes a cluster as a file says, with PUT. Server-side apply knows who has set which field, and keeps
// what others have set; PUT replaces spec, labels and annotations by those of the file. Where polder alone writes, that
// is the same: fields that polder create, scale and upgrade have set belong to apply, too. It differs for what somebody
// has set with PATCH or kubectl: where the file does not mention it, apply would keep it, and where the file says
// something else, refuse to change it without --force. What the plane itself keeps in labels and annotations stays.
// There is no If-Match, as there is none in apply: a status that changes meanwhile would make it fail.
func (c *call) applyCluster(ctx context.Context) (any, error) {
	wanted, meta, err := c.decode()
	if err != nil {
		return nil, err
	}
	if !namePattern.MatchString(c.name) {
		return c.createCluster(ctx) // which says what is wrong with the name
	}
	is, err := c.getCluster(ctx)
	switch {
	case err == nil:
		keepOfPlane(is.(object), meta) //nolint:forcetypeassert // see getCluster
		wanted["metadata"] = meta
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	b, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	var o object
	res, err := c.api.PutClusterWithBody(ctx, c.tenant(), c.name, &client.PutClusterParams{DryRun: c.isDryRun()}, typeJSON,
		bytes.NewReader(b))
	if err := c.read(ctx, res, err, &o); err != nil {
		return nil, err
	}
	return c.in(o), nil
}

// keepOfPlane copies labels and annotations of the plane that are not wanted otherwise.
func keepOfPlane(is, wanted object) {
	was, _ := is["metadata"].(object)
	for _, field := range []string{"labels", "annotations"} {
		before, _ := was[field].(object)
		after, _ := wanted[field].(object)
		kept := maps.Clone(after)
		for key, v := range before {
			domain, _, _ := strings.Cut(key, "/")
			if _, given := after[key]; !given && (domain == "polder.dev" || strings.HasSuffix(domain, ".polder.dev")) {
				if kept == nil {
					kept = object{}
				}
				kept[key] = v
			}
		}
		if kept != nil {
			wanted[field] = kept
		}
	}
}

// mergeIntoCluster changes fields of one cluster: of a version, or of a UID, of which the REST API takes the former.
func (c *call) mergeIntoCluster(ctx context.Context) (any, error) {
	patch, meta, err := c.decode()
	if err != nil {
		return nil, err
	}
	v, _ := meta["resourceVersion"].(string)
	uid, _ := meta["uid"].(string)
	delete(meta, "resourceVersion")
	delete(meta, "uid")
	if len(meta) == 0 {
		delete(patch, "metadata")
	}
	b, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if uid == "" || v != "" {
		return c.sendPatch(ctx, b, v)
	}
	var changed any
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its status may change meanwhile
		is, err := c.getCluster(ctx)
		if err != nil {
			return err
		}
		_, now := versionOf(is.(object)) //nolint:forcetypeassert // see getCluster
		if now.uid != uid {
			return apierrors.NewBadRequest("it is not the cluster that was meant: that is gone, and this one has its name")
		}
		changed, err = c.sendPatch(ctx, b, now.resourceVersion)
		return err
	})
	return changed, err
}

func (c *call) sendPatch(ctx context.Context, patch []byte, resourceVersion string) (any, error) {
	p := &client.PatchClusterParams{DryRun: c.isDryRun()}
	if resourceVersion != "" {
		p.IfMatch = eTag(resourceVersion)
	}
	var o object
	res, err := c.api.PatchClusterWithBody(ctx, c.tenant(), c.name, p,
		string(types.MergePatchType), bytes.NewReader(patch))
	if err := c.read(ctx, res, err, &o); err != nil {
		return nil, err
	}
	return c.in(o), nil
}
