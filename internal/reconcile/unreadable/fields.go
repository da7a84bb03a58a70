package unreadable

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// wrongField is a field that cannot be decoded.
type wrongField struct {
	path []string
	err  error
}

// removeUnreadable returns an object without the fields that cannot be decoded, and these. The object is nil if it
// cannot be decoded without them either.
func removeUnreadable(raw []byte, decode func([]byte) error) (map[string]any, []wrongField) {
	var o map[string]any
	if utiljson.Unmarshal(raw, &o) != nil {
		return nil, nil
	}
	r := remover{decode: decode}
	r.remove(o, nil)
	if b, err := json.Marshal(o); err != nil || decode(b) != nil {
		return nil, r.wrong
	}
	return o, r.wrong
}

// remover tries field after field: an error of decoding names one field, and some errors name none.
type remover struct {
	decode func([]byte) error
	wrong  []wrongField
}

// remove removes from the object at a path what cannot be decoded.
func (r *remover) remove(at map[string]any, path []string) {
	for _, name := range slices.Sorted(maps.Keys(at)) {
		field := append(slices.Clone(path), name)
		err := r.try(field, at[name])
		if err == nil {
			continue
		}
		// If an object may be here, only a part of it is wrong.
		if inner, ok := at[name].(map[string]any); ok && r.try(field, map[string]any{}) == nil {
			r.remove(inner, field)
			continue
		}
		delete(at, name)
		r.wrong = append(r.wrong, wrongField{field, err})
	}
}

// try decodes an object that has only this field.
func (r *remover) try(path []string, value any) error {
	for _, name := range slices.Backward(path) {
		value = map[string]any{name: value}
	}
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return r.decode(b)
}

// describeFields says what is wrong with the first of the fields.
func describeFields(wrong []wrongField, err error) string {
	if len(wrong) == 0 {
		return err.Error()
	}
	w := wrong[0]
	text := strings.Join(w.path, ".") + " cannot be read: " + w.err.Error()
	var mismatch *json.UnmarshalTypeError
	if errors.As(w.err, &mismatch) {
		is, _, _ := strings.Cut(mismatch.Value, " ") // without the digits of a number
		text = fmt.Sprintf("%s holds %s where %s belongs", strings.Join(fieldOf(w, mismatch), "."),
			cmp.Or(jsonNames[is], is), nameType(mismatch.Type))
	}
	if more := len(wrong) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more fields are wrong)", more)
	}
	return text
}

// fieldOf returns the path of a field inside a list, if the error knows it.
func fieldOf(w wrongField, mismatch *json.UnmarshalTypeError) []string {
	if prefix := strings.Join(w.path, ".") + "."; strings.HasPrefix(mismatch.Field, prefix) {
		return strings.Split(mismatch.Field, ".")
	}
	return w.path
}

// jsonNames are the types of JSON in plain words.
var jsonNames = map[string]string{
	"string": "text", "number": "a number", "object": "an object", "array": "a list", "bool": "true or false",
}

// nameType says in plain words what a Go type is in JSON.
func nameType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return jsonNames["string"]
	case reflect.Bool:
		return jsonNames["bool"]
	case reflect.Slice, reflect.Array:
		return jsonNames["array"]
	case reflect.Struct, reflect.Map:
		return jsonNames["object"]
	case reflect.Pointer:
		return nameType(t.Elem())
	default:
		return jsonNames["number"]
	}
}
