package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/config/crd"
)

func schemaOf(t *testing.T) schema.Schema {
	t.Helper()
	s, diags := newSchema(t.Context())
	if err := asError(diags); err != nil {
		t.Fatal(err)
	}
	return s
}

// emptyModel is that of a cluster which was just imported.
func emptyModel(tenant, name string) *model {
	return &model{
		Tenant: types.StringValue(tenant), Name: types.StringValue(name),
		Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{
			"create": types.StringType, "update": types.StringType, "delete": types.StringType,
		})},
	}
}

// throughState writes a model as a state and reads it again, so that nothing is kept that a state does not keep.
func throughState(t *testing.T, m *model) *model {
	t.Helper()
	s := schemaOf(t)
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), nil)}
	if err := asError(state.Set(t.Context(), m)); err != nil {
		t.Fatal(err)
	}
	out := &model{}
	if err := asError(state.Get(t.Context(), out)); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill gives every field of a value something, so that a conversion which passes over one is found.
func fill(t *testing.T, v reflect.Value, at string) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse("4Gi")
		return
	case *map[string]apiextensionsv1.JSON:
		*x = map[string]apiextensionsv1.JSON{
			"text": {Raw: []byte(`"a"`)}, "number": {Raw: []byte(`1.5`)}, "large": {Raw: []byte(`9007199254740993`)}, "flag": {Raw: []byte(`false`)},
			"list": {Raw: []byte(`["a",1]`)}, "object": {Raw: []byte(`{"a":{"b":[true]}}`)},
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), at+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), fmt.Sprint(at, i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": at, "b": ""}))
	case reflect.String:
		v.SetString(at)
	case reflect.Int32:
		v.SetInt(int64(len(at)))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("%s is a %s, which this test does not know yet", at, v.Kind())
	}
}

// TestEveryFieldRoundTrips finds a field of the spec that the resource lacks.
func TestEveryFieldRoundTrips(t *testing.T) {
	var o v1alpha1.WorkloadCluster
	fill(t, reflect.ValueOf(&o.Spec).Elem(), "spec")
	o.Name, o.UID, o.Labels = "demo", "1", map[string]string{"a": "b"}
	m := emptyModel("acme", "demo")
	if err := flatten(t.Context(), m, &o); err != nil {
		t.Fatal(err)
	}
	back, err := expand(t.Context(), throughState(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(readable(t, o.Spec), readable(t, back.Spec)); d != "" {
		t.Errorf("a field is lost on the way to the state and back; -plane +state:\n%s", d)
	}
	if d := cmp.Diff(o.Labels, back.Labels); d != "" {
		t.Error(d)
	}
	// Read again, nothing changes, whatever it was written as.
	again := throughState(t, m)
	if err := flatten(t.Context(), again, &o); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(throughState(t, again), throughState(t, m)) {
		t.Error("what was read twice is another state")
	}
}

func readable(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEmptyStaysAsItWasWritten: a configuration that says "none" in one way must not get the answer "none" in another.
func TestEmptyStaysAsItWasWritten(t *testing.T) {
	o := &v1alpha1.WorkloadCluster{}
	o.UID, o.Name = "1", "demo"
	o.Spec.Stack.Name = "scs"
	o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "w", Taints: []v1alpha1.Taint{{Key: "k", Effect: "NoSchedule"}}}, {Name: "x"}}
	m := emptyModel("acme", "demo")
	m.UID, m.Labels = types.StringUnknown(), map[string]string{}
	m.Parameters = types.DynamicValue(types.ObjectValueMust(nil, nil))
	m.Stack = &stackModel{Name: types.StringValue("scs"), Version: types.StringValue("")}
	m.Workers = []workerModel{
		{Name: types.StringValue("w"), MachineType: types.StringValue(""), Labels: map[string]string{}, Zones: []string{}, Taints: []taintModel{{Key: types.StringValue("k"), Effect: types.StringValue("NoSchedule"), Value: types.StringValue("")}}},
		{Name: types.StringValue("x"), Taints: []taintModel{}},
	}
	o.Annotations = map[string]string{"others": "1"}
	if err := flatten(t.Context(), m, o); err != nil {
		t.Fatal(err)
	}
	w := m.Workers
	if m.Labels == nil || m.Annotations != nil {
		t.Errorf("labels and annotations: %v %v", m.Labels, m.Annotations)
	}
	if m.Stack.Version.IsNull() || w[0].MachineType.IsNull() || w[0].Labels == nil || w[0].Zones == nil || w[0].Taints[0].Value.IsNull() {
		t.Errorf("what was written as empty is null: %+v", m)
	}
	if w[1].Taints == nil || w[1].Zones != nil || w[1].Labels != nil || !w[1].MachineType.IsNull() || !m.Stack.KubernetesVersion.IsNull() {
		t.Errorf("what was left out is empty: %+v", w[1])
	}
	if m.Parameters.IsNull() {
		t.Error("parameters that are empty became null")
	}
	m.Workers, o.Spec.Workers = []workerModel{}, nil
	if err := flatten(t.Context(), m, o); err != nil || m.Workers == nil {
		t.Errorf("no workers became null: %v", err)
	}
}

// TestEveryFieldHasAnAttribute walks over the fields of the spec: what the plane says of each must come to an attribute.
func TestEveryFieldHasAnAttribute(t *testing.T) {
	s := schemaOf(t)
	n := 0
	var walk func(at string, of reflect.Type)
	walk = func(at string, of reflect.Type) {
		switch {
		case of.Kind() == reflect.Pointer:
			walk(at, of.Elem())
			return
		case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
			walk(at+"[0]", of.Elem())
			return
		case of.Kind() != reflect.Struct || of == reflect.TypeFor[resource.Quantity]():
			n++
			p, ok := locate(at)
			if _, diags := s.AttributeAtPath(t.Context(), p); !ok || diags.HasError() {
				t.Errorf("%s is not found in the schema, at %s: %v", at, p, diags)
			}
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				walk(at, f.Type)
				continue
			}
			walk(at+"."+name, f.Type)
		}
	}
	walk("spec", reflect.TypeFor[v1alpha1.WorkloadClusterSpec]())
	if n < 30 {
		t.Errorf("only %d fields were found", n)
	}
}

func TestLocate(t *testing.T) {
	for location, want := range map[string]string{
		"spec.provider": "provider_name", "spec.stack.kubernetesVersion": "stack.kubernetes_version", "spec.oidc.issuerURL": "oidc.issuer_url",
		"spec.workers[1].machine.memory": "workers[1].machine.memory", "spec.workers[0].labels[a]": `workers[0].labels["a"]`,
		"spec.workers[0].taints[2].key": "workers[0].taints[2].key", "spec.parameters.certSANs[0]": `parameters["certSANs"]`, "spec.parameters[certSANs]": `parameters["certSANs"]`,
		"spec.network.podCIDRs[0]": "network.pod_cidrs[0]", "metadata.name": "name", "metadata.labels": "labels", "path.tenant": "tenant", "path.cluster": "name",
	} {
		if got, ok := locate(location); !ok || got.String() != want {
			t.Errorf("%s is at %s, not %s", location, got, want)
		}
	}
	for _, location := range []string{"", "body", "metadata.finalizers", "query.dryRun"} {
		if got, ok := locate(location); ok {
			t.Errorf("%q is at %s", location, got)
		}
	}
}

// TestDefaultsAreThoseOfThePlane: where the schema has a default, the plane's definition has the same.
func TestDefaultsAreThoseOfThePlane(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	var spec apiextensionsv1.JSONSchemaProps
	for _, c := range all {
		if c.Spec.Names.Kind == "WorkloadCluster" {
			spec = c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		}
	}
	property := func(of apiextensionsv1.JSONSchemaProps, names ...string) string {
		for _, n := range names {
			of = of.Properties[n]
		}
		if of.Default == nil {
			return ""
		}
		return string(of.Default.Raw)
	}
	for _, x := range []struct {
		at   path.Path
		want string
	}{
		{path.Root("stack").AtName("channel"), property(spec, "stack", "channel")},
		{path.Root("control_plane").AtName("replicas"), property(spec, "controlPlane", "replicas")},
		{path.Root("workers").AtListIndex(0).AtName("replicas"), property(*spec.Properties["workers"].Items.Schema, "replicas")},
	} {
		a, diags := schemaOf(t).AttributeAtPath(t.Context(), x.at)
		if diags.HasError() {
			t.Fatal(diags)
		}
		if got := defaultOf(t.Context(), a); got != x.want || x.want == "" {
			t.Errorf("the default of %s is %s; the plane's is %s", x.at, got, x.want)
		}
	}
}

// defaultOf is the default of an attribute, as JSON.
func defaultOf(ctx context.Context, a any) string {
	switch a := a.(type) {
	case schema.StringAttribute:
		var out defaults.StringResponse
		a.Default.DefaultString(ctx, defaults.StringRequest{}, &out)
		return fmt.Sprintf("%q", out.PlanValue.ValueString())
	case schema.Int32Attribute:
		var out defaults.Int32Response
		a.Default.DefaultInt32(ctx, defaults.Int32Request{}, &out)
		return fmt.Sprint(out.PlanValue.ValueInt32())
	}
	return ""
}
