package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/suggest"
	"github.com/polder-kaas/polder/provider"
)

// maxParameters is the size that all parameters together may have, in bytes of JSON. Clusters have a few hundred.
const maxParameters = 64 << 10

// exceedsMaxParameters reports whether parameters are too large to be checked.
func exceedsMaxParameters(parameters map[string]provider.JSON) bool {
	n := 0
	for name, v := range parameters {
		n += len(name) + len(v.Raw)
	}
	return n > maxParameters
}

// checkParameters requires parameters of the class or of the provider, with values that fit their schemas. setBy are
// the variables that the provider sets, with the fields they follow from. It is nil if that is not known: then no
// parameter is missed.
func (q *clusterReview) checkParameters(ctx context.Context, p *v1alpha1.Provider, release provider.Release, setBy map[string]string) {
	at := spec.Child("parameters")
	schemas := map[string]map[string]any{}
	for _, v := range release.Variables {
		schemas[v.Name] = v.Schema
	}
	own := providerParameters(p)
	maps.Copy(schemas, own)
	names := slices.Sorted(maps.Keys(schemas))
	found := &schemaErrors{}
	for _, name := range slices.Sorted(maps.Keys(q.object.Spec.Parameters)) {
		here := at.Child(name)
		schema, ok := schemas[name]
		if !ok {
			found.add(field.Invalid(here, field.OmitValueType{}, fmt.Sprintf("stack %s has no such parameter; it has %s%s", release.Name, strings.Join(names, ", "), suggest.Hint(name, names))))
			continue
		}
		if err := checkProviderVariable(name, setBy, own); err != nil {
			found.add(err)
			continue
		}
		var value any
		if err := json.Unmarshal(q.object.Spec.Parameters[name].Raw, &value); err != nil {
			found.add(field.Invalid(here, field.OmitValueType{}, "it is no value"))
			continue
		}
		before := len(found.errs)
		// CEL rules may rely on types and lengths, so they are checked only for values that fit the rest of the schema.
		if found.checkValue(here, schema, value, 0); len(found.errs) == before && !found.isFull() {
			found.add(checkCELRules(ctx, at, name, schema, q.object.Spec.Parameters[name], q.oldParameter(name))...)
		}
	}
	q.errs = append(q.errs, found.errs...)
	for _, v := range release.Variables {
		_, has := q.object.Spec.Parameters[v.Name]
		_, def := v.Schema["default"]
		if _, set := setBy[v.Name]; v.Required && !has && !def && !set && setBy != nil {
			q.addError(field.Required(at.Child(v.Name), schemaDescription(v.Schema)))
		}
	}
}

// oldParameter returns the value before the change, for CEL rules that compare with oldSelf.
func (q *clusterReview) oldParameter(name string) provider.JSON {
	if q.old == nil {
		return provider.JSON{}
	}
	return q.old.Spec.Parameters[name]
}

// providerParameters returns the schemas of the parameters that the provider itself takes.
func providerParameters(p *v1alpha1.Provider) map[string]map[string]any {
	if p.Status.Parameters == nil {
		return nil
	}
	var out map[string]map[string]any
	if err := json.Unmarshal(p.Status.Parameters.Raw, &out); err != nil {
		return nil // the provider reports that itself
	}
	return out
}

// schemaDescription returns the description of a schema, as the message for a required field.
func schemaDescription(schema map[string]any) string {
	text, _ := schema["description"].(string)
	if text == "" {
		return "the stack needs it"
	}
	return text
}
