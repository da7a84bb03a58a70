package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
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
type list[T any] struct{ Body listBody[T] }

// listBody is no type of its own, so that the published document has no name for it.
type listBody[T any] = struct {
	Items         []T    `json:"items" nullable:"false"`
	NextPageToken string `json:"nextPageToken,omitempty" doc:"If there are more: pageToken of the next request."`
}

// rawObject is an object of the plane of which only metadata are read.
type rawObject struct {
	APIVersion json.RawMessage            `json:"apiVersion"`
	Kind       json.RawMessage            `json:"kind"`
	Metadata   map[string]json.RawMessage `json:"metadata"`
	Spec       json.RawMessage            `json:"spec"`
	Status     json.RawMessage            `json:"status"`
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
		Items []rawObject `json:"items"`
	}
	if err := a.getPath(ctx, path+"/"+of.Resource, page.query(), &found); err != nil {
		return nil, err
	}
	return newList[T](found.Items, found.Metadata.Continue, keep...)
}

// newList makes an answer of objects of the plane.
func newList[T ~map[string]any](items []rawObject, next string, keep ...string) (*list[T], error) {
	out := &list[T]{}
	out.Body.Items, out.Body.NextPageToken = make([]T, len(items)), next
	for i, item := range items {
		o, err := item.present(keep...)
		if err != nil {
			return nil, err
		}
		out.Body.Items[i] = o
	}
	return out, nil
}

// present is the function of that name for an object whose spec and status were not read.
func (o rawObject) present(keep ...string) (map[string]any, error) {
	out := map[string]any{}
	for name, raw := range map[string]json.RawMessage{
		"apiVersion": o.APIVersion, "kind": o.Kind, "spec": o.Spec, "status": o.Status,
	} {
		if raw != nil {
			out[name] = raw
		}
	}
	kept := map[string]any{}
	for _, name := range slices.Concat(keptMetadata, keep) {
		if v, ok := o.Metadata[name]; ok {
			kept[name] = v
		}
	}
	if raw, ok := o.Metadata["annotations"]; ok {
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

// jsonFormat writes lists of objects as the plane wrote them, and everything else as huma does.
var jsonFormat = huma.Format{Marshal: marshalJSON, Unmarshal: huma.DefaultJSONFormat.Unmarshal}

func marshalJSON(w io.Writer, v any) error {
	switch body := v.(type) {
	case listBody[clusterObject]:
		return writeList(w, body)
	case listBody[tenantObject]:
		return writeList(w, body)
	case listBody[stackObject]:
		return writeList(w, body)
	case listBody[releaseObject]:
		return writeList(w, body)
	case listBody[providerObject]:
		return writeList(w, body)
	}
	return huma.DefaultJSONFormat.Marshal(w, v)
}

// writeList writes a list. Package json would read all that the plane wrote once more.
func writeList[T ~map[string]any](w io.Writer, body listBody[T]) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteString(`{"items":[`)
	for i, o := range body.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeObject(&b, e, o); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	if body.NextPageToken != "" {
		b.WriteString(`,"nextPageToken":`)
		if err := e.Encode(body.NextPageToken); err != nil {
			return err
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// writeObject writes an object; e writes to b.
func writeObject(b *bytes.Buffer, e *json.Encoder, o map[string]any) error {
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name))
		b.WriteByte(':')
		raw, ok := o[name].(json.RawMessage)
		if ok {
			b.Write(raw)
			continue
		}
		if err := e.Encode(o[name]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
