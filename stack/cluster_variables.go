package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/stack/schema"
)

// VariableError is what is wrong with a variable of a Cluster.
type VariableError struct{ Variable, Text string }

func (e VariableError) Error() string { return fmt.Sprintf("variable %s", e.Text) }

// CheckVariables returns what Cluster API would refuse in the values of variables of a Cluster of the class. Variables
// that are missing are not looked for: what sets them may come later.
func (c *Class) CheckVariables(ctx context.Context, d ClusterData) ([]VariableError, error) {
	var cluster struct {
		Spec struct {
			Topology struct {
				Variables []struct {
					Name  string          `json:"name"`
					Value json.RawMessage `json:"value"`
				} `json:"variables"`
			} `json:"topology"`
		} `json:"spec"`
	}
	if err := convertJSON(d.Cluster, &cluster); err != nil {
		return nil, err
	}
	schemas := map[string]map[string]any{}
	var names []string
	for _, v := range c.Variables {
		schemas[v.Name] = v.Schema.OpenAPIV3Schema
		names = append(names, v.Name)
	}
	slices.Sort(names)
	var out []VariableError
	for _, v := range cluster.Spec.Topology.Variables {
		s, ok := schemas[v.Name]
		if !ok {
			text := fmt.Sprintf("%s: the class has no such variable; it has %s", v.Name, strings.Join(names, ", "))
			out = append(out, VariableError{v.Name, text})
			continue
		}
		for _, e := range schema.ForVariable(s).Validate(ctx, field.NewPath(v.Name), v.Value, nil) {
			out = append(out, VariableError{v.Name, fmt.Sprintf("%s: %s", e.Field, e.Detail)})
		}
	}
	return out, nil
}
