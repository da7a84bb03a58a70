package schema

import (
	"encoding/json"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// wrapper is the one property of the object that a value is checked in: a structural schema is that of an object, and
// a value may be none.
const wrapper = "variableValue"

// toJSONSchemaProps converts the schema of a variable to the types of the structural schema library, as Cluster API
// does.
func toJSONSchemaProps(s map[string]any) (*apiextensions.JSONSchemaProps, error) {
	b, err := json.Marshal(keepKnownFields(s))
	if err != nil {
		return nil, err
	}
	var versioned apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(b, &versioned); err != nil {
		return nil, err
	}
	out := &apiextensions.JSONSchemaProps{}
	return out, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&versioned, out, nil)
}

// keepKnownFields returns a schema with only those fields that have a meaning in Cluster API, so that no $ref is ever
// followed. Schemas of providers may say nullable too.
func keepKnownFields(s map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		switch {
		case k == "x-kubernetes-preserve-unknown-fields" && v != true, k == "x-metadata", k == "description":
			// False is the same as nothing, and refused by the library. The others are no constraints; in allOf and
			// the like the library refuses descriptions, and Cluster API does not.
		case k == "properties":
			out[k] = mapProperties(v, keepKnownFields)
		case slices.Contains(subschemaFields, k):
			out[k] = mapSubschema(v, keepKnownFields)
		case slices.Contains(subschemaLists, k):
			out[k] = mapSubschemas(v, keepKnownFields)
		case slices.Contains(knownFields, k), k == "nullable":
			out[k] = v
		}
	}
	return out
}

// newStructural returns the structural schema of an object that has the value in its one property.
func newStructural(s *apiextensions.JSONSchemaProps) (*structuralschema.Structural, error) {
	return structuralschema.NewStructural(&apiextensions.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensions.JSONSchemaProps{wrapper: *s},
	})
}
