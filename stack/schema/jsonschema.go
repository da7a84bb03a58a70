package schema

// JSONSchema is the schema of a variable as JSON Schema of today has it: Kubernetes writes limits
// that are excluded the way an older draft did, and has fields of its own.
func JSONSchema(s map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		switch k {
		case "exclusiveMaximum", "exclusiveMinimum", "x-metadata", "x-kubernetes-validations",
			"x-kubernetes-preserve-unknown-fields":
		case "x-kubernetes-int-or-string":
			if v == true {
				out["type"] = []any{"integer", "string"}
			}
		case "example":
			out["examples"] = []any{v}
		case "properties":
			out[k] = mapProperties(v, JSONSchema)
		case "items", "additionalProperties", "not":
			out[k] = mapSubschema(v, JSONSchema)
		case "oneOf", "anyOf", "allOf":
			out[k] = mapSubschemas(v, JSONSchema)
		default:
			out[k] = v
		}
	}
	for limit, excluded := range map[string]string{"maximum": "exclusiveMaximum", "minimum": "exclusiveMinimum"} {
		if v, ok := out[limit]; ok && s[excluded] == true {
			delete(out, limit)
			out[excluded] = v
		}
	}
	return out
}
