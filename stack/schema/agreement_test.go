package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"

	"github.com/polder-kaas/polder/stack/schema"
)

// variable is a variable as Cluster API has it.
type variable struct{ class *clusterv1.ClusterClass }

// newVariable reads a schema as Cluster API does. The second result is false for what its API server would not store.
func newVariable(t testing.TB, s map[string]any) (variable, bool) {
	t.Helper()
	if err := feature.MutableGates.Set("ClusterTopology=true"); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return variable{}, false
	}
	var props clusterv1.JSONSchemaProps
	if err := json.Unmarshal(b, &props); err != nil {
		return variable{}, false
	}
	c := &clusterv1.ClusterClass{}
	c.Spec.Variables = []clusterv1.ClusterClassVariable{{Name: "p", Schema: clusterv1.VariableSchema{OpenAPIV3Schema: props}}}
	c.Status.Variables = []clusterv1.ClusterClassStatusVariable{{
		Name:        "p",
		Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{Schema: c.Spec.Variables[0].Schema}},
	}}
	return variable{c}, true
}

// checkSchema asks Cluster API what is wrong with the schema.
func (v variable) checkSchema(ctx context.Context) []string {
	_, err := (&admission.ClusterClass{}).ValidateCreate(ctx, v.class)
	var invalid *apierrors.StatusError
	var out []string
	if errors.As(err, &invalid) {
		for _, cause := range invalid.ErrStatus.Details.Causes {
			if strings.HasPrefix(cause.Field, "spec.variables") { // the class has nothing else
				out = append(out, cause.Message)
			}
		}
	}
	return out
}

// checkValue asks Cluster API what is wrong with a value.
func (v variable) checkValue(ctx context.Context, value, old string) field.ErrorList {
	cluster := func(raw string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{}
		one := clusterv1.ClusterVariable{Name: "p"}
		one.Value.Raw = []byte(raw)
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{one}
		return c
	}
	var before *clusterv1.Cluster
	if json.Valid([]byte(old)) {
		before = cluster(old)
		if errs := admission.DefaultVariables(before, v.class); len(errs) > 0 {
			before = nil
		}
	}
	return (&admission.Cluster{}).DefaultAndValidateVariables(ctx, cluster(value), before, v.class)
}

// What we say about a value is what Cluster API says.
func TestValidateAgreesWithClusterAPI(t *testing.T) {
	for name, c := range valueCases {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.schema)
			v, ok := newVariable(t, s)
			if !ok {
				t.Fatal("the schema is none of Cluster API")
			}
			theirs := v.checkValue(t.Context(), c.value, c.old)
			ours := validate(t, schema.ForVariable(s), c.value, c.old)
			if (len(theirs) == 0) != (len(ours) == 0) {
				t.Errorf("Cluster API says %v, and we say %v", theirs, ours)
			}
		})
	}
}

// Values of all kinds against all schemas: most do not fit, and few are refused for the reason the schema was made for.
func TestValidateAgreesOnAllPairs(t *testing.T) {
	var values []string
	for _, c := range valueCases {
		values = append(values, c.value)
	}
	for name, c := range valueCases {
		s := parse(t, c.schema)
		theirs, ok := newVariable(t, s)
		if !ok {
			t.Fatal(name)
		}
		ours := schema.ForVariable(s)
		for _, value := range values {
			refused := theirs.checkValue(t.Context(), value, c.value)
			said := validate(t, ours, value, c.value)
			if (len(refused) == 0) != (len(said) == 0) {
				t.Errorf("%s, value %s: Cluster API says %v, and we say %v", name, value, refused, said)
			}
		}
	}
}

// What Cluster API refuses in a schema, the linter finds. It finds more.
func TestCheckAgreesWithClusterAPI(t *testing.T) {
	for name, c := range schemaCases {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.text)
			v, ok := newVariable(t, s)
			if !ok || len(s) == 0 {
				// Its types cannot even hold it; the linter must find something.
				if ours, _ := schema.Check(t.Context(), s); len(ours) == 0 {
					t.Error("the linter finds nothing in what is no schema of Cluster API")
				}
				return
			}
			theirs := v.checkSchema(t.Context())
			ours, _ := schema.Check(t.Context(), s)
			if len(theirs) > 0 && len(ours) == 0 {
				t.Errorf("Cluster API says %v, and we say nothing", theirs)
			}
			if len(theirs) == 0 && len(ours) > 0 && !c.stricter {
				t.Errorf("Cluster API says nothing, and we say %v", ours)
			}
		})
	}
}

func FuzzValidate(f *testing.F) {
	for _, c := range valueCases {
		b, err := json.Marshal(parse(f, c.schema))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), c.value, c.old)
	}
	f.Fuzz(func(t *testing.T, text, value, old string) {
		var s map[string]any
		if json.Unmarshal([]byte(text), &s) != nil || len(s) == 0 {
			return
		}
		checkQuietly(t, s)
		validate(t, schema.ForProvider(s), value, old)
		said := validate(t, schema.ForVariable(s), value, old)
		v, ok := newVariable(t, s)
		if !ok || !json.Valid([]byte(value)) {
			return
		}
		for _, text := range said {
			switch {
			case strings.Contains(text, "panic: "):
				t.Fatal(text)
			case strings.Contains(text, "takes too long"), strings.Contains(text, "cannot be used"):
				return // that is our own limit, so that this needs no time
			}
		}
		if refused := v.checkValue(t.Context(), value, old); (len(refused) == 0) != (len(said) == 0) {
			t.Errorf("Cluster API says %v, and we say %v", refused, said)
		}
	})
}

// checkQuietly checks a schema, and requires that no library panics.
func checkQuietly(t testing.TB, s map[string]any) {
	t.Helper()
	problems, _ := schema.Check(t.Context(), s)
	for _, p := range problems {
		if strings.Contains(p, "panic: ") {
			t.Fatal(p)
		}
	}
}
