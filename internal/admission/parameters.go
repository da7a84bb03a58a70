package admission

import (
	"bytes"
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
	"github.com/polder-kaas/polder/stack/schema"
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
func (q *clusterReview) checkParameters(ctx context.Context, p *v1alpha1.Provider, release provider.Release,
	setBy map[string]string) {
	at := spec.Child("parameters")
	schemas := map[string]map[string]any{}
	for _, v := range release.Variables {
		schemas[v.Name] = v.Schema
	}
	own := providerParameters(p)
	maps.Copy(schemas, own)
	names := slices.Sorted(maps.Keys(schemas))
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(q.object.Spec.Parameters)) {
		if len(errs) > schema.MaxErrors {
			break
		}
		here := at.Child(name)
		if _, ok := schemas[name]; !ok {
			errs = append(errs, field.Invalid(here, field.OmitValueType{},
				fmt.Sprintf("stack %s has no such parameter; it has %s%s", release.Name, strings.Join(names, ", "),
					suggest.Hint(name, names))))
			continue
		}
		if err := checkProviderVariable(name, setBy, own); err != nil {
			errs = append(errs, err)
			continue
		}
		validator := schema.ForVariable(schemas[name])
		if _, ok := own[name]; ok {
			validator = schema.ForProvider(schemas[name])
		}
		validator.Hint = suggest.Hint
		errs = append(errs, validator.Validate(ctx, here, q.object.Spec.Parameters[name].Raw, q.oldParameter(name))...)
	}
	q.errs = append(q.errs, errs[:min(len(errs), schema.MaxErrors+1)]...)
	for _, v := range release.Variables {
		_, has := q.object.Spec.Parameters[v.Name]
		_, def := v.Schema["default"]
		_, set := setBy[v.Name]
		switch {
		case has || set || setBy == nil:
		case def:
			q.checkDefault(ctx, at.Child(v.Name), v)
		case v.Required:
			q.addError(field.Required(at.Child(v.Name), schema.Description(v.Schema)))
		}
	}
}

// checkDefault checks the value that a variable gets because nobody sets it. By itself it fits, but a CEL rule may
// forbid to change to it from the value that the cluster has.
func (q *clusterReview) checkDefault(ctx context.Context, at *field.Path, v provider.Variable) {
	old := q.oldParameter(v.Name)
	value, err := json.Marshal(v.Schema["default"])
	if err != nil || len(old) == 0 || bytes.Equal(old, value) {
		return
	}
	q.errs = append(q.errs, schema.ForVariable(v.Schema).Validate(ctx, at, value, old)...)
}

// oldParameter returns the value before the change, for CEL rules that compare with oldSelf: the customer's or, if
// there was none, what the Cluster has. It is empty for a new cluster.
func (q *clusterReview) oldParameter(name string) []byte {
	if q.old == nil {
		return nil
	}
	if v, ok := q.old.Spec.Parameters[name]; ok {
		return v.Raw
	}
	if q.cluster == nil {
		return nil
	}
	for _, v := range q.cluster.Spec.Topology.Variables {
		if v.Name == name {
			return v.Value.Raw
		}
	}
	return nil
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
