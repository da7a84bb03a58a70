package crd_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/config/crd"
)

// shape is the schema of machines by their shape, as the API server reads it.
func shape(t *testing.T) *apiextensions.JSONSchemaProps {
	t.Helper()
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Spec.Names.Kind != "WorkloadCluster" {
			continue
		}
		s := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["controlPlane"].Properties["machine"]
		out := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&s, out, nil); err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Fatal("there is no WorkloadCluster")
	return nil
}

// The API server lets no amount in that nobody can read or compare: those with exponents, or with digits without end.
func TestAmounts(t *testing.T) {
	s := shape(t)
	form, err := structural.NewStructural(s)
	if err != nil {
		t.Fatal(err)
	}
	if errs := structural.ValidateStructural(field.NewPath("machine"), form); len(errs) > 0 {
		t.Fatal(errs)
	}
	v, _, err := validation.NewSchemaValidator(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory", "disk"} {
		for _, c := range []struct {
			amount any
			ok     bool
		}{
			{"4Gi", true}, {"20G", true}, {"1.5Ti", true}, {"1395864371200m", true}, {"4294967296", true}, {int64(4294967296), true}, {"0", true},
			{"1e3", false}, {"1E3", false}, {"1e2000000000", false}, {"1e-2000000000", false}, {1e300, false}, {"-4Gi", false}, {"lots", false}, {"", false},
			{true, false},
			{"12345678901234567890123456789", false}, {"1.1234567890", false},
		} {
			o := map[string]any{"cpu": int64(1), "memory": "1Gi"}
			o[name] = c.amount
			if errs := validation.ValidateCustomResource(field.NewPath("machine"), o, v); (len(errs) == 0) != c.ok {
				t.Errorf("%s %v: %v", name, c.amount, errs)
			}
		}
	}
}

// The API server would take all definitions. A new plane gets them written into its store, where nobody checks them: a
// rule that costs too much would be found out when the next version is started on an old plane.
func TestDefinitionsAreValid(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
		in := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, in, nil); err != nil {
			t.Fatal(err)
		}
		in.Status.StoredVersions = []string{d.Spec.Versions[0].Name}
		if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), in); len(errs) > 0 {
			t.Errorf("%s: %v", d.Name, errs.ToAggregate())
		}
	}
}
