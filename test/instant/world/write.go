package world

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// maxBody is how much may be sent at once.
const maxBody = 3 << 20

var errUnsupportedMediaType = errors.New("only JSON is understood, and patches that are merged or applied")

// write carries out a request that changes an object.
func (s *store) write(q request) ([]byte, int, error) {
	if q.Method == http.MethodDelete {
		b, err := s.change(q.id, func(map[string]any) (map[string]any, error) { return nil, nil })
		return b, http.StatusOK, err
	}
	body, err := io.ReadAll(io.LimitReader(q.Body, maxBody))
	if err != nil {
		return nil, 0, fmt.Errorf("reading what was sent: %w", err)
	}
	form, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	switch q.Method {
	case http.MethodPost:
		b, err := s.create(q, form, body)
		return b, http.StatusCreated, err
	case http.MethodPut:
		b, err := s.change(q.id, func(old map[string]any) (map[string]any, error) {
			made, err := decodeObject(q, form, body)
			return made, errors.Join(err, checkPreconditions(old, made))
		})
		return b, http.StatusOK, err
	case http.MethodPatch:
		b, err := s.change(q.id, func(old map[string]any) (map[string]any, error) { return applyPatch(q, form, old, body) })
		return b, http.StatusOK, err
	}
	return nil, 0, fmt.Errorf("%s is not understood", q.Method)
}

func (s *store) create(q request, form string, body []byte) ([]byte, error) {
	made, err := decodeObject(q, form, body)
	if err != nil {
		return nil, err
	}
	q.name = (&unstructured.Unstructured{Object: made}).GetName()
	if q.name == "" {
		return nil, errors.New("it has no name")
	}
	return s.change(q.id, func(old map[string]any) (map[string]any, error) {
		if old != nil {
			return nil, errAlreadyExists
		}
		return made, nil
	})
}

// decodeObject reads a whole object.
func decodeObject(q request, form string, body []byte) (map[string]any, error) {
	if form != "application/json" && form != "" {
		return nil, errUnsupportedMediaType
	}
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil || out == nil {
		return nil, errors.New("it is no object")
	}
	out["apiVersion"], out["kind"] = q.GroupVersion().String(), q.Kind
	return out, nil
}

// checkPreconditions refuses an object that has changed since its sender read it.
func checkPreconditions(old, sent map[string]any) error {
	if old == nil {
		return errNotFound
	}
	is, was := unstructured.Unstructured{Object: old}, unstructured.Unstructured{Object: sent}
	if v := was.GetResourceVersion(); v != "" && v != is.GetResourceVersion() {
		return errConflict
	}
	if u := was.GetUID(); u != "" && u != is.GetUID() {
		return errConflict
	}
	return nil
}

// applyPatch merges a patch. Server-side apply merges too, and creates what is not there: nobody owns fields here.
func applyPatch(q request, form string, old map[string]any, body []byte) (map[string]any, error) {
	var sent map[string]any
	if err := yaml.Unmarshal(body, &sent); err != nil || sent == nil {
		return nil, errors.New("the patch is no object")
	}
	apply := form == string(types.ApplyPatchType) || form == string(types.ApplyCBORPatchType)
	if apply && old == nil {
		sent["apiVersion"], sent["kind"] = q.GroupVersion().String(), q.Kind
		return sent, nil
	}
	if err := checkPreconditions(old, sent); err != nil {
		return nil, err
	}
	switch {
	case form == string(types.StrategicMergePatchType) && q.Kind == "Node":
		return strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(old), sent, corev1.Node{}) // it changes what it is given
	case apply || form == string(types.MergePatchType) || form == string(types.StrategicMergePatchType):
		made, _ := mergePatch(old, sent).(map[string]any)
		return made, nil
	}
	return nil, errUnsupportedMediaType
}

// mergePatch merges one value over another, as RFC 7386 has it.
func mergePatch(into, sent any) any {
	to, ok := into.(map[string]any)
	from, fits := sent.(map[string]any)
	if !fits {
		return sent
	}
	out := map[string]any{}
	if ok {
		for k, v := range to {
			out[k] = v
		}
	}
	for k, v := range from {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = mergePatch(out[k], v)
	}
	return out
}
