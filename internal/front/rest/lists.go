package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Page is a part of a list.
type Page struct {
	PageSize  int64  `query:"pageSize" minimum:"1" maximum:"500" default:"100" doc:"How many at most."`
	PageToken string `query:"pageToken" maxLength:"4096" doc:"nextPageToken of the answer before."`
}

func (p Page) query() url.Values {
	q := url.Values{"limit": {fmt.Sprint(p.PageSize)}}
	if p.PageToken != "" {
		q.Set("continue", p.PageToken)
	}
	return q
}

// list is the answer to a question for many.
type list[T any] struct {
	Body struct {
		Items         []T    `json:"items" nullable:"false"`
		NextPageToken string `json:"nextPageToken,omitempty" doc:"If there are more: pageToken of the next request."`
	}
}

// listObjects lists objects of a namespace, or of none, with the rights of the caller, as customers see them; keep are
// fields of metadata that they see besides. What is in spec and status is handed on as the plane has written it:
// reading and writing each object anew costs more than the plane needs for the whole list.
func listObjects[T ~map[string]any](ctx context.Context, a *API, of schema.GroupVersionResource, namespace string,
	page Page, keep ...string) (*list[T], error) {
	path := "/apis/" + of.Group + "/" + of.Version
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	var found struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []map[string]json.RawMessage `json:"items"`
	}
	if err := a.getPath(ctx, path+"/"+of.Resource, page.query(), &found); err != nil {
		return nil, err
	}
	return newList[T](found.Items, found.Metadata.Continue, keep...)
}

// newList makes an answer of objects of the plane.
func newList[T ~map[string]any](items []map[string]json.RawMessage, next string, keep ...string) (*list[T], error) {
	out := &list[T]{}
	out.Body.Items, out.Body.NextPageToken = make([]T, len(items)), next
	for i, item := range items {
		o, err := presentRaw(item, keep...)
		if err != nil {
			return nil, err
		}
		out.Body.Items[i] = o
	}
	return out, nil
}

// presentRaw is present for an object whose fields were not read.
func presentRaw(item map[string]json.RawMessage, keep ...string) (map[string]any, error) {
	out := make(map[string]any, len(item))
	for name, raw := range item {
		out[name] = raw
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(item["metadata"], &meta); err != nil {
		return nil, fmt.Errorf("reading metadata of the plane: %w", err)
	}
	kept := map[string]any{}
	for _, name := range slices.Concat(keptMetadata, keep) {
		if v, ok := meta[name]; ok {
			kept[name] = v
		}
	}
	if raw, ok := meta["annotations"]; ok {
		var all map[string]string
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, fmt.Errorf("reading annotations of the plane: %w", err)
		}
		for _, name := range hiddenAnnotations {
			delete(all, name)
		}
		kept["annotations"] = all
		if len(all) == 0 {
			delete(kept, "annotations")
		}
	}
	out["metadata"] = kept
	return out, nil
}
