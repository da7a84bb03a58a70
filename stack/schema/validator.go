package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	jsonnumbers "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Validator checks the values of one parameter with the library and the limits by which Cluster API checks those of a
// variable: what it accepts, Cluster API accepts. The sentences are our own.
type Validator struct {
	// Hint ends the sentence about a word that is not known with the one that was perhaps meant; nil for no hints.
	Hint func(word string, among []string) string

	schema     map[string]any // as JSON has it
	lenient    bool
	err        error // why the library cannot use the schema
	openAPI    validation.SchemaValidator
	structural *structuralschema.Structural // of the object around the value
}

// ForVariable returns the Validator of a variable of a class. It refuses all values if the schema is one that Cluster
// API could not use, or too large.
func ForVariable(s map[string]any) *Validator { return newValidator(s, false) }

// ForProvider returns the Validator of a parameter that a provider itself takes. Cluster API never sees it, so its
// schema need not be structural: what the library cannot use is not checked, and an object without properties takes all
// fields. Defaults are the provider's to fill in.
func ForProvider(s map[string]any) *Validator { return newValidator(s, true) }

func newValidator(s map[string]any, lenient bool) *Validator {
	v := &Validator{lenient: lenient}
	if v.err = checkSchemaSize(s); v.err != nil {
		v.schema = s
		return v
	}
	if v.schema, v.err = asJSON(s); v.err != nil {
		return v
	}
	v.err = catch(func() error {
		props, err := toJSONSchemaProps(v.schema)
		if err != nil {
			return err
		}
		if v.openAPI, _, err = validation.NewSchemaValidator(props); err != nil {
			return err
		}
		v.structural, err = newStructural(props)
		return err
	})
	return v
}

// asJSON returns a schema with numbers as JSON has them.
func asJSON(s map[string]any) (out map[string]any, err error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(b, &out)
}

// catch returns a panic as an error: schemas and values come from strangers, and the libraries were made for others.
func catch(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return do()
}

// largeValue is the size in bytes from which on a value that our own check finds wrong is not judged by the library.
const largeValue = 4 << 10

// Validate returns what is wrong with a value, at most one error more than MaxErrors. old is the value before; empty
// if there was none. Both are JSON.
func (v *Validator) Validate(ctx context.Context, at *field.Path, value, old []byte) field.ErrorList {
	after, err := decodeValue(value)
	if err != nil {
		return refuse(at, "it is no value")
	}
	before, unreadable := decodeValue(old) // what cannot be read cannot be compared with
	switch {
	case v.err != nil && !v.lenient:
		return refuse(at, fmt.Sprintf("the stack's own schema of it cannot be used: %v; ask whoever made the stack", v.err))
	case v.err != nil:
		return v.explain(at, after)
	case !isAffordable(v.schema, after, before):
		return refuse(at, "to check it takes too long; write less, or ask whoever made the stack")
	}
	var errs field.ErrorList
	err = catch(func() error {
		if errs = v.checkSchema(at, after, len(value) > largeValue); len(errs) == 0 {
			// CEL rules may rely on types and lengths.
			var wrapped any
			if unreadable == nil {
				wrapped = v.wrap(before)
			}
			errs = v.checkRules(ctx, at, v.wrap(after), wrapped)
		}
		return nil
	})
	if err != nil {
		return refuse(at, fmt.Sprintf("it cannot be checked: %v; ask whoever made the stack", err))
	}
	return errs[:min(len(errs), MaxErrors+1)]
}

// decodeValue reads a value as Cluster API does: numbers lose what is too long for a float64, and are whole numbers
// again if they can be.
func decodeValue(raw []byte) (out any, err error) {
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, err
	}
	b, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	return out, jsonnumbers.Unmarshal(b, &out)
}

func refuse(at *field.Path, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(at, field.OmitValueType{}, why)}
}

// wrap puts a copy of a value into the object that the structural schema is for, and fills in defaults.
func (v *Validator) wrap(value any) map[string]any {
	o := map[string]any{wrapper: runtime.DeepCopyJSONValue(value)}
	defaulting.Default(o, v.structural)
	return o
}

// checkSchema checks a value against all of the schema but its CEL rules. The library decides; the sentences are our
// own wherever we have one.
func (v *Validator) checkSchema(at *field.Path, value any, large bool) field.ErrorList {
	if v.lenient {
		if errs := v.explain(at, value); len(errs) > 0 {
			return errs
		}
		if v.hasInvalidPattern() {
			return nil // no value could be right
		}
		return rephrase(validation.ValidateCustomResource(at, value, v.openAPI))
	}
	// Cluster API fills in defaults before it checks.
	value = v.wrap(value)[wrapper]
	// The library takes a time that grows with the square of how much is wrong, and goes on where a list is too long. A
	// large value is wrong already if our own check says so.
	explained := v.explain(at, value)
	if large && len(explained) > 0 {
		return explained
	}
	judged := rephrase(validation.ValidateCustomResource(at, value, v.openAPI))
	if len(judged) == 0 {
		judged = v.findUnknownFields(at, value)
	}
	if len(judged) == 0 {
		return nil
	}
	if len(explained) > 0 {
		return explained
	}
	return judged
}

// findUnknownFields returns the fields that pruning would take away. Cluster API refuses them.
func (v *Validator) findUnknownFields(at *field.Path, value any) (errs field.ErrorList) {
	o := map[string]any{wrapper: runtime.DeepCopyJSONValue(value)}
	opts := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(o, v.structural, false, opts) {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeInvalid, Field: at.String() + strings.TrimPrefix(path, wrapper),
			BadValue: field.OmitValueType{}, Detail: "there is no such field",
		})
	}
	return errs
}

// rephrase makes sentences of the library's errors about which we have none.
func rephrase(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		e.BadValue = field.OmitValueType{}
		e.Detail = "it does not fit the stack's schema: " + strings.TrimPrefix(strings.TrimSpace(e.Detail), "in body ")
	}
	return errs
}

// explain says in our own sentences what is wrong with a value.
func (v *Validator) explain(at *field.Path, value any) field.ErrorList {
	b, err := json.Marshal(value)
	var plain any
	if err = errors.Join(err, json.Unmarshal(b, &plain)); err != nil {
		return refuse(at, "it is no value")
	}
	f := newExplainer(v.Hint)
	f.alternatives, f.closed = v.err == nil, !v.lenient
	f.checkValue(at, v.schema, plain, level{})
	return f.errs[:min(len(f.errs), MaxErrors+1)]
}

// hasInvalidPattern says that a pattern somewhere in the schema cannot be compiled.
func (v *Validator) hasInvalidPattern() bool {
	f := newExplainer(nil)
	var look func(s map[string]any) bool
	look = func(s map[string]any) (found bool) {
		if p, ok := s["pattern"].(string); ok && f.compilePattern(p) == nil {
			return true
		}
		forEachSubschema(s, func(_ string, sub map[string]any) { found = found || look(sub) })
		return found
	}
	return look(v.schema)
}

// checkRules checks a value against the CEL rules of its schema. Both values are wrapped; old is nil if there was none.
func (v *Validator) checkRules(ctx context.Context, at *field.Path, value, old any) field.ErrorList {
	rules := cel.NewValidator(v.structural, false, celconfig.PerCallLimit)
	if rules == nil {
		return nil
	}
	// A value that costs too much is an error in errs too, so the budget that is left does not matter.
	errs, _ := rules.Validate(ctx, nil, v.structural, value, old, celconfig.RuntimeCELCostBudget)
	for _, e := range errs {
		e.Field = at.String() + strings.TrimPrefix(e.Field, wrapper)
		explainRule(e)
	}
	// The library goes through fields in any order.
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// explainRule makes one sentence of the library's error about a rule. A message of the rule itself stays as it is.
func explainRule(e *field.Error) {
	const failed = "failed rule: "
	switch {
	case strings.HasPrefix(e.Detail, failed):
		e.Detail = "it must keep to the rule " + strings.TrimPrefix(e.Detail, failed)
	case strings.Contains(e.Detail, "no further validation rules will be run"):
		e.Detail = "to check it by the stack's rules takes too long; write less, or ask whoever made the stack"
		e.BadValue = field.OmitValueType{}
	case strings.HasPrefix(e.Detail, "rule compile"):
		e.Detail = "the stack's own rule for it cannot be used; ask whoever made the stack: " + e.Detail
		e.BadValue = field.OmitValueType{}
	case strings.Contains(e.Detail, " evaluating rule: "), strings.Contains(e.Detail, "for rule: "):
		e.Detail = "a rule of the stack cannot be evaluated for it: " + e.Detail
		e.BadValue = field.OmitValueType{}
	default:
		e.BadValue = omitLongValue(e.BadValue)
	}
}
