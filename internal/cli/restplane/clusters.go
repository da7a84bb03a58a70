package restplane

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
)

const (
	pageSize = 500 // the most that the REST API gives at once
	typeJSON = "application/json"
)

type object = map[string]any

// in puts the namespace back into an object.
func (q *request) in(o object) object {
	if meta, ok := o["metadata"].(object); ok && q.namespace != "" {
		meta["namespace"] = q.namespace
	}
	return o
}

// list is what Kubernetes answers to a question for many.
func list(apiVersion, kind, version string, items []object) object {
	if items == nil {
		items = []object{}
	}
	return object{
		"apiVersion": apiVersion, "kind": kind, "metadata": object{"resourceVersion": version}, "items": items,
	}
}

// pages reads all parts of a list.
func (c *call) pages(ctx context.Context, get func(token string) (*http.Response, error)) (all []object, err error) {
	for token := ""; ; {
		var page struct {
			Items         []object `json:"items"`
			NextPageToken string   `json:"nextPageToken"`
		}
		res, err := get(token)
		if err := c.read(ctx, res, err, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			all = append(all, c.in(o))
		}
		if token = page.NextPageToken; token == "" {
			return all, nil
		}
	}
}

func (c *call) getCluster(ctx context.Context) (any, error) {
	if !namePattern.MatchString(c.name) {
		return nil, c.notFound(ctx)
	}
	var o object
	res, err := c.api.GetCluster(ctx, c.tenant(), c.name, &client.GetClusterParams{})
	if err := c.read(ctx, res, err, &o); err != nil {
		return nil, err
	}
	return c.in(o), nil
}

func (c *call) listClusters(ctx context.Context) (any, error) {
	var all []object
	var err error
	if c.name = c.selectedName(); c.name != "" {
		var o any
		o, err = c.getCluster(ctx)
		switch {
		case apierrors.IsNotFound(err):
			err = nil
		case err == nil:
			all = []object{o.(object)} //nolint:forcetypeassert // see getCluster
		}
	} else {
		all, err = c.pages(ctx, func(token string) (*http.Response, error) {
			return c.api.ListClusters(ctx, c.tenant(), &client.ListClustersParams{PageSize: pageSize, PageToken: token})
		})
	}
	if err != nil {
		return nil, err
	}
	seen := snapshot{}
	for _, o := range all {
		name, v := versionOf(o)
		seen[name] = v
	}
	return list(v1alpha1.GroupVersion.String(), "WorkloadClusterList", c.remember(seen), all), nil
}

func versionOf(o object) (name string, v objectVersion) {
	meta, _ := o["metadata"].(object)
	name, _ = meta["name"].(string)
	v.uid, _ = meta["uid"].(string)
	v.resourceVersion, _ = meta["resourceVersion"].(string)
	return name, v
}

// decode reads the body of a request, and its metadata without the namespace, which is in the path.
func (c *call) decode() (o, meta object, err error) {
	if err := utiljson.Unmarshal(c.body, &o); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if meta, _ = o["metadata"].(object); meta == nil {
		meta = object{}
	}
	delete(meta, "namespace")
	return o, meta, nil
}

func (c *call) createCluster(ctx context.Context) (any, error) {
	wanted, meta, err := c.decode()
	if err != nil {
		return nil, err
	}
	c.name, _ = meta["name"].(string)
	b, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	var o object
	res, err := c.api.CreateClusterWithBody(ctx, c.tenant(), &client.CreateClusterParams{DryRun: c.isDryRun()}, typeJSON,
		bytes.NewReader(b))
	if err := c.read(ctx, res, err, &o); err != nil {
		return nil, err
	}
	return c.in(o), nil
}

func (c *call) deleteCluster(ctx context.Context) (any, error) {
	if !namePattern.MatchString(c.name) {
		return nil, c.notFound(ctx)
	}
	var options metav1.DeleteOptions
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	p := &client.DeleteClusterParams{DryRun: c.isDryRun() || len(options.DryRun) > 0}
	if only := options.Preconditions; only != nil {
		if only.UID != nil {
			p.Uid = string(*only.UID)
		}
		if only.ResourceVersion != nil {
			p.IfMatch = eTag(*only.ResourceVersion)
		}
	}
	res, err := c.api.DeleteCluster(ctx, c.tenant(), c.name, p)
	if err := c.read(ctx, res, err, nil); err != nil {
		return nil, err
	}
	return success(), nil
}

func success() metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
}

func eTag(resourceVersion string) string { return `"` + resourceVersion + `"` }
