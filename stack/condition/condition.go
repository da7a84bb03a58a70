// Package condition compiles and evaluates what stages wait for: CEL expressions over objects of the
// workload cluster.
package condition

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"

	"github.com/polder-kaas/polder/stack/text"
)

const (
	maxLength = 16 << 10
	// maxCost bounds one evaluation; a comparison of two fields costs less than ten.
	maxCost = 1_000_000
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Program is a compiled expression. It may be used by many goroutines.
type Program struct {
	keys    []string
	program cel.Program
}

// Compile reads an expression whose variables are the keys of its objects.
func Compile(expression string, keys []string) (*Program, error) {
	if strings.TrimSpace(expression) == "" {
		return nil, errors.New("the expression is empty; say for example deployment.status.readyReplicas > 0")
	}
	if len(expression) > maxLength {
		return nil, fmt.Errorf("the expression has %d characters; at most %d are taken", len(expression), maxLength)
	}
	var opts []cel.EnvOption
	for _, k := range keys {
		if !identifier.MatchString(k) {
			return nil, fmt.Errorf("the key %.60q cannot be a name in an expression; use letters, digits and _", k)
		}
		opts = append(opts, cel.Variable(k, cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, oneLine(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, oneLine(issues.Err())
	}
	if t := ast.OutputType(); !t.IsEquivalentType(cel.BoolType) && !t.IsEquivalentType(cel.DynType) {
		return nil, fmt.Errorf("the expression gives a value of type %s; it must be true or false", t)
	}
	if cost, err := env.EstimateCost(ast, smallestObjects{}); err != nil {
		return nil, oneLine(err)
	} else if cost.Max > maxCost {
		return nil, fmt.Errorf("the expression may cost %d even on the smallest objects; at most %d is allowed", cost.Max,
			maxCost)
	}
	p, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, oneLine(err)
	}
	return &Program{keys: slices.Clone(keys), program: p}, nil
}

// smallestObjects says that every list and text in an object has one item: how large they are is not known before the
// objects are there, so only what the expression itself costs is judged beforehand.
type smallestObjects struct{}

func (smallestObjects) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 1, Max: 1}
}

func (smallestObjects) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// Eval says whether the condition is true for the objects, which must be there for all keys. A field
// that an object does not have yet is no error, nor is a list that is still empty or a value that is
// not set: then the condition is not true, and missing says what it waits for.
func (p *Program) Eval(objects map[string]map[string]any) (met bool, missing string, err error) {
	vars := map[string]any{}
	for _, k := range p.keys {
		if objects[k] == nil {
			return false, fmt.Sprintf("object %q does not exist yet", k), nil
		}
		vars[k] = objects[k]
	}
	out, _, err := p.program.Eval(vars)
	if err != nil {
		// CEL has no types for these errors. Waiting helps against all of them but the cost limit.
		if field, ok := strings.CutPrefix(err.Error(), "no such key: "); ok {
			return false, fmt.Sprintf("the field %s is not there yet", field), nil
		}
		if strings.Contains(err.Error(), "cost limit exceeded") {
			return false, "", oneLine(err)
		}
		return false, fmt.Sprintf("it cannot be said yet: %v", oneLine(err)), nil
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, "", fmt.Errorf("the expression gave a value of type %s; it must be true or false",
			out.Type().TypeName())
	}
	return bool(b), "", nil
}

// oneLine keeps the message of an error of CEL, without the excerpt of the expression that follows it.
func oneLine(err error) error {
	message, _, _ := strings.Cut(err.Error(), "\n | ")
	message = text.Truncate(strings.Join(strings.Fields(message), " "), 300)
	return errors.New(strings.TrimPrefix(message, "ERROR: <input>:"))
}
