package apply

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// serverSetFields are fields of metadata that an API server sets; generated manifests often have some.
var serverSetFields = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "selfLink",
	"uid",
}

// sanitizeObject returns a copy of an object that has a name and a kind, without the fields that servers set. The
// copy goes through JSON, since DeepCopy panics on types that JSON does not have, such as int.
func sanitizeObject(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o == nil || len(o.Object) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	b, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(b, &u.Object); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok || u.GetName() == "" {
		return nil, fmt.Errorf("%s has no name", describe(u))
	}
	if _, err := schema.ParseGroupVersion(u.GetAPIVersion()); err != nil || u.GetAPIVersion() == "" || u.GetKind() == "" {
		return nil, fmt.Errorf("%s has no apiVersion and kind", describe(u))
	}
	for _, field := range serverSetFields {
		delete(metadata, field)
	}
	return u, nil
}

// describe names an object in an error, as far as it has a name.
func describe(u *unstructured.Unstructured) string {
	return cmp.Or(strings.TrimSpace(RefOf(u).String()), "it")
}

// normalizeContent refuses or corrects content that an API server would refuse or take for something else.
func normalizeContent(ref Ref, u *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		// A field that is null is no map of strings either, but means the same as none.
		if _, _, err := unstructured.NestedStringMap(u.Object, "metadata", field); err != nil &&
			u.Object["metadata"].(map[string]any)[field] != nil {
			return fmt.Errorf("has %s that are not all strings; quote them in the chart", field)
		}
	}
	if ref.Group == "" && ref.Kind == "Secret" {
		return normalizeSecret(u)
	}
	return nil
}

// normalizeSecret moves stringData into data. The API server does that too, but then nobody owns the keys: one
// that is left out later would stay for ever. Values are checked here, since the API server's message would
// repeat them.
func normalizeSecret(u *unstructured.Unstructured) error {
	data, err := stringMap(u, "data")
	if err != nil {
		return err
	}
	for k, v := range data {
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			return fmt.Errorf("has data.%s that is not base64; encode it in the chart, or use stringData", k)
		}
	}
	plain, err := stringMap(u, "stringData")
	if err != nil || len(plain) == 0 {
		return err
	}
	for k, v := range plain {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	delete(u.Object, "stringData")
	return unstructured.SetNestedStringMap(u.Object, data, "data")
}

// stringMap reads a field of u whose values must all be strings.
func stringMap(u *unstructured.Unstructured, field string) (map[string]string, error) {
	out := map[string]string{}
	if u.Object[field] == nil {
		return out, nil
	}
	values, ok := u.Object[field].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("has %s that is no object", field)
	}
	var wrong []string
	for k, v := range values {
		s, ok := v.(string)
		if !ok && v != nil {
			wrong = append(wrong, field+"."+k)
		}
		out[k] = s
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("has %s, which must be text; quote it in the chart", strings.Join(wrong, ", "))
	}
	return out, nil
}
