package admission

import (
	"bytes"
	"context"
	"encoding/json"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	jsonnumbers "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/polder-kaas/polder/provider"
)

// checkCELRules checks a value against the CEL rules of its parameter's schema. Cluster API would report them too, but
// only after the object is stored. It has refused schemas that are invalid already, so errors of the schema are ignored
// here.
func checkCELRules(ctx context.Context, at *field.Path, name string, schema map[string]any, value, old provider.JSON) field.ErrorList {
	text, err := json.Marshal(schema)
	if err != nil || !bytes.Contains(text, []byte("x-kubernetes-validations")) {
		return nil
	}
	var outer apiextensionsv1.JSONSchemaProps
	var inner apiextensions.JSONSchemaProps
	if json.Unmarshal(text, &outer) != nil || apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&outer, &inner, nil) != nil {
		return nil
	}
	// Rules of a value that is no object are evaluated only within one.
	s, err := structural.NewStructural(&apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{name: inner}})
	if err != nil {
		return nil
	}
	within := func(v provider.JSON) any {
		var out any
		if len(v.Raw) == 0 || jsonnumbers.Unmarshal(v.Raw, &out) != nil {
			return nil
		}
		o := map[string]any{name: out}
		defaulting.Default(o, s)
		return o
	}
	v := cel.NewValidator(s, false, celconfig.PerCallLimit)
	if v == nil {
		return nil
	}
	// A value that costs too much to evaluate is an error in errs too, so the budget that is left does not matter.
	errs, _ := v.Validate(ctx, at, s, within(value), within(old), celconfig.RuntimeCELCostBudget)
	return errs
}
