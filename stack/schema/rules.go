package schema

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
)

// Limits of Kubernetes for definitions, which are Cluster API's too. The package that has them is not imported: it
// brings along gRPC and tracing, for a command that must stay small.
const (
	maxMessage   = 2048        // characters of a message
	maxRuleCost  = 10_000_000  // estimated for one expression
	maxTotalCost = 100_000_000 // estimated for all expressions of a schema
)

// cheaper says what to do about a rule that may cost too much.
const cheaper = "simplify, or set maxItems, maxProperties and maxLength on the lists, maps and texts that are looked at"

// ruleChecker compiles the CEL rules of a schema as Cluster API does when it gets a class.
type ruleChecker struct {
	*checker
	totalCost uint64
}

// surroundings is what a rule's cost and its use of oldSelf depend on.
type surroundings struct {
	root   bool
	inList bool    // entries of lists cannot be told apart, so rules cannot compare them with the value before
	most   *uint64 // how often the value can occur; nil if nothing bounds it
}

// below returns the surroundings of what is directly within a schema.
func (a surroundings) below(s *apiextensions.JSONSchemaProps) surroundings {
	out := surroundings{inList: a.inList || s.Type == "array", most: a.most}
	limit := ptr.To[int64](1)
	switch {
	case s.Type == "array":
		limit = s.MaxItems
	case s.Type == "object" && s.AdditionalProperties != nil:
		limit = s.MaxProperties
	}
	if limit == nil || a.most == nil {
		out.most = nil
		return out
	}
	out.most = ptr.To(multiply(*a.most, uint64(max(*limit, 0))))
	return out
}

// checkRuleSet checks all rules of a schema.
func (c *checker) checkRuleSet(props *apiextensions.JSONSchemaProps) error {
	r := &ruleChecker{checker: c}
	if err := r.checkBelow("", props, surroundings{root: true, most: ptr.To[uint64](1)}); err != nil {
		return err
	}
	if r.totalCost > maxTotalCost && len(c.problems) == 0 { // otherwise it is told of one rule already
		c.addProblem("", "all rules together may cost %s; %s", describeFactor(r.totalCost, maxTotalCost), cheaper)
	}
	return nil
}

// describeFactor says how many times as much as allowed something costs.
func describeFactor(cost, limit uint64) string {
	if cost/limit > 100 {
		return "more than 100 times what is allowed"
	}
	return fmt.Sprintf("%.1f times what is allowed", float64(cost)/float64(limit))
}

// checkBelow checks the rules of a schema and of all within it.
func (r *ruleChecker) checkBelow(at string, s *apiextensions.JSONSchemaProps, a surroundings) error {
	below := a.below(s)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		if err := r.checkBelow(joinPath(at, "*"), s.AdditionalProperties.Schema, below); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		sub := s.Properties[name]
		if err := r.checkBelow(joinPath(at, name), &sub, below); err != nil {
			return err
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		if err := r.checkBelow(at+"[]", s.Items.Schema, below); err != nil {
			return err
		}
	}
	return r.checkRulesOf(at, s, a)
}

// checkRulesOf checks the rules of a schema itself.
func (r *ruleChecker) checkRulesOf(at string, s *apiextensions.JSONSchemaProps, a surroundings) error {
	if len(s.XValidations) == 0 {
		return nil
	}
	structural, err := structuralschema.NewStructural(s)
	if err != nil {
		return err
	}
	before := len(r.problems)
	r.checkRuleFields(at, s, structural)
	if len(r.problems) > before {
		return nil
	}
	declared := model.SchemaDeclType(structural, a.root)
	if declared == nil && a.root && s.Type == "array" {
		r.addProblem(at, "Cluster API takes no rules on a variable that is itself a list; make the list a field of an object")
		return nil
	}
	if declared == nil {
		return errors.New(prefixPath(at, "rules cannot be used for what has no type"))
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	loader := cel.NewExpressionsEnvLoader()
	results, err := cel.Compile(structural, declared, celconfig.PerCallLimit, environments, loader)
	if err != nil {
		return err
	}
	for i, result := range results {
		r.checkCompiled(at, s.XValidations[i], result, a)
	}
	return nil
}

// checkRuleFields checks what a rule has beside its expression.
func (r *ruleChecker) checkRuleFields(
	at string, s *apiextensions.JSONSchemaProps, structural *structuralschema.Structural,
) {
	for _, v := range s.XValidations {
		message := strings.TrimSpace(v.Message)
		name := truncate(strings.TrimSpace(v.Rule))
		switch {
		case strings.TrimSpace(v.Rule) == "":
			r.addProblem(at, "a rule is empty")
		case v.Message != "" && message == "", v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "":
			r.addProblem(at, "the message of rule %q is empty", name)
		case len(v.Message) > maxMessage:
			r.addProblem(at, "the message of rule %q is longer than %d characters", name, maxMessage)
		case strings.ContainsAny(message, "\n\r"):
			r.addProblem(at, "the message of rule %q has more than one line", name)
		case strings.ContainsAny(strings.TrimSpace(v.Rule), "\n\r") && message == "":
			r.addProblem(at, "the rule %q has more than one line, so it must have a message", name)
		}
		if v.Reason != nil && !isKnownReason(*v.Reason) {
			r.addProblem(at, "the reason %q of rule %q is not known", *v.Reason, name)
		}
		if v.FieldPath == "" {
			continue
		}
		_, _, err := cel.ValidFieldPath(v.FieldPath, structural)
		if err != nil || strings.ContainsAny(v.FieldPath, "\n\r") {
			r.addProblem(at, "the fieldPath %q of rule %q is not that of a field", v.FieldPath, name)
		}
	}
}

func isKnownReason(reason apiextensions.FieldValueErrorReason) bool {
	switch reason {
	case apiextensions.FieldValueRequired, apiextensions.FieldValueForbidden,
		apiextensions.FieldValueInvalid, apiextensions.FieldValueDuplicate:
		return true
	}
	return false
}

// checkCompiled checks what the compiler says about a rule.
func (r *ruleChecker) checkCompiled(
	at string, rule apiextensions.ValidationRule, result cel.CompilationResult, a surroundings,
) {
	text := strings.TrimSpace(rule.Rule)
	if result.Error != nil {
		why, verb := firstLine(result.Error.Detail), "compile"
		if strings.Contains(why, "Syntax error") {
			verb = "parse"
		}
		r.addProblem(at, "the rule %.80q does not %s: %s", text, verb, why)
	}
	cardinality := result.MaxCardinality
	if a.most != nil {
		cardinality = *a.most
	}
	r.checkCost(at, fmt.Sprintf("the rule %.80q", text), multiply(result.MaxCost, cardinality))
	if result.MessageExpressionError != nil {
		r.addProblem(at, "the messageExpression of rule %.80q does not compile: %s",
			text, firstLine(result.MessageExpressionError.Detail))
	} else if result.MessageExpression != nil {
		r.checkCost(at, fmt.Sprintf("the messageExpression of rule %.80q", text), result.MessageExpressionMaxCost)
	}
	if result.UsesOldSelf && a.inList {
		r.addProblem(at, "the rule %.80q uses oldSelf in a list, whose entries cannot be compared with those before", text)
	}
}

func (r *ruleChecker) checkCost(at, what string, cost uint64) {
	if cost > maxRuleCost {
		r.addProblem(at, "%s may cost %s; %s", what, describeFactor(cost, maxRuleCost), cheaper)
	}
	r.totalCost = add(r.totalCost, cost)
}

// multiply and add stop at the largest number.
func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return ^uint64(0)
	}
	return low
}

func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return ^uint64(0)
	}
	return sum
}

// firstLine returns the first line of what the CEL compiler says; the others draw where it is.
func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	if _, text, ok := strings.Cut(first, "compilation failed: "); ok {
		first = text
	}
	return strings.TrimPrefix(first, "ERROR: <input>:")
}
