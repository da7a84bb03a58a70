package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func server(t *testing.T, env map[string]string) tfprotov6.ProviderServer {
	t.Helper()
	return providerserver.NewProtocol6(New("test", func(name string) string { return env[name] })())()
}

// TestSchemaIsValid asks for the schema as Terraform does, which refuses names that it has for itself.
func TestSchemaIsValid(t *testing.T) {
	got, err := server(t, nil).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Diagnostics {
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
	if got.ResourceSchemas["polder_cluster"] == nil || got.EphemeralResourceSchemas["polder_kubeconfig"] == nil {
		t.Errorf("%v %v", got.ResourceSchemas, got.EphemeralResourceSchemas)
	}
	if len(got.DataSourceSchemas) > 0 {
		t.Error("a data source would keep what it reads in the state")
	}
}

// TestConfiguration: what is missing or contradicts itself is said at its attribute, and the environment fills in.
func TestConfiguration(t *testing.T) {
	const at = "https://polder.example.org/v1"
	for name, x := range map[string]struct {
		config, env map[string]string
		want        string // of the diagnostic; empty: none
	}{
		"nothing":                       {want: `AttributeName("endpoint"): It is not said where the plane is`},
		"no token":                      {config: map[string]string{"endpoint": at}, want: `AttributeName("token"): It is not said who asks`},
		"two tokens":                    {config: map[string]string{"endpoint": at, "token": "a", "token_file": "b"}, want: `AttributeName("token_file"): There are two tokens`},
		"no such file":                  {config: map[string]string{"endpoint": at, "token_file": "/none"}, want: `AttributeName("token_file"): The token cannot be read`},
		"not encrypted":                 {config: map[string]string{"endpoint": "http://a/v1", "token": "a"}, want: "The plane cannot be asked"},
		"configuration":                 {config: map[string]string{"endpoint": at, "token": "a"}},
		"environment":                   {env: map[string]string{"POLDER_ENDPOINT": at, "POLDER_TOKEN": "a"}},
		"a file of the environment":     {env: map[string]string{"POLDER_ENDPOINT": at, "POLDER_TOKEN_FILE": "/none"}, want: "The token cannot be read"},
		"configuration before it":       {config: map[string]string{"endpoint": at, "token": "a"}, env: map[string]string{"POLDER_TOKEN_FILE": "/none", "POLDER_ENDPOINT": "x"}},
		"two tokens of the environment": {env: map[string]string{"POLDER_ENDPOINT": at, "POLDER_TOKEN": "a", "POLDER_TOKEN_FILE": "b"}, want: "There are two tokens"},
	} {
		values := map[string]tftypes.Value{}
		ts := map[string]tftypes.Type{}
		for _, n := range []string{"endpoint", "token", "token_file", "ca_certificate"} {
			ts[n] = tftypes.String
			values[n] = tftypes.NewValue(tftypes.String, nil)
			if v, ok := x.config[n]; ok {
				values[n] = tftypes.NewValue(tftypes.String, v)
			}
		}
		config, err := tfprotov6.NewDynamicValue(tftypes.Object{AttributeTypes: ts}, tftypes.NewValue(tftypes.Object{AttributeTypes: ts}, values))
		if err != nil {
			t.Fatal(err)
		}
		got, err := server(t, x.env).ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &config})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, d := range got.Diagnostics {
			said += d.Attribute.String() + ": " + d.Summary + "\n"
		}
		if x.want == "" && said != "" || !strings.Contains(said, x.want) {
			t.Errorf("%s: %q, not %q", name, said, x.want)
		}
	}
}

// TestWhatNeedsAnotherCluster plans changes of a cluster, without a plane: what it refuses to change is planned anew.
func TestWhatNeedsAnotherCluster(t *testing.T) {
	s := server(t, nil)
	got, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	object := got.ResourceSchemas["polder_cluster"].ValueType().(tftypes.Object)
	text := func(v string) tftypes.Value { return tftypes.NewValue(tftypes.String, v) }
	texts := func(v string) tftypes.Value {
		return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{text(v)})
	}
	// nested is an object of the schema in which some attributes are set.
	nested := func(of tftypes.Type, set map[string]tftypes.Value) tftypes.Value {
		all := map[string]tftypes.Value{}
		for name, ty := range of.(tftypes.Object).AttributeTypes {
			all[name] = tftypes.NewValue(ty, nil)
		}
		for name, v := range set {
			all[name] = v
		}
		return tftypes.NewValue(of, all)
	}
	at := object.AttributeTypes
	state := func(name, value string) tftypes.Value {
		set := map[string]string{"tenant": "acme", "name": "demo", "provider_name": "local", "stack": "scs", "version": "v1", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"}
		set[name] = value
		return nested(object, map[string]tftypes.Value{
			"id": text("acme/demo"), "uid": text("1"), "endpoint": text("https://demo"), "tenant": text(set["tenant"]), "name": text(set["name"]),
			"provider_name": text(set["provider_name"]),
			"stack":         nested(at["stack"], map[string]tftypes.Value{"name": text(set["stack"]), "version": text(set["version"]), "kubernetes_version": text("1.36"), "channel": text("stable")}),
			"control_plane": nested(at["control_plane"], map[string]tftypes.Value{"replicas": tftypes.NewValue(tftypes.Number, 1)}),
			"network":       nested(at["network"], map[string]tftypes.Value{"pod_cidrs": texts(set["pods"]), "service_cidrs": texts(set["services"])}),
			"status":        nested(at["status"], nil),
		})
	}
	dynamic := func(v tftypes.Value) *tfprotov6.DynamicValue {
		d, err := tfprotov6.NewDynamicValue(object, v)
		if err != nil {
			t.Fatal(err)
		}
		return &d
	}
	for name, replaced := range map[string]bool{"tenant": true, "name": true, "provider_name": true, "stack": true, "pods": true, "services": true, "version": false} {
		planned := state(name, "another")
		got, err := s.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: "polder_cluster", PriorState: dynamic(state("", "")), ProposedNewState: dynamic(planned), Config: dynamic(planned),
		})
		if err != nil || len(got.Diagnostics) > 0 {
			t.Fatalf("%s: %v %+v", name, err, got.Diagnostics)
		}
		if (len(got.RequiresReplace) > 0) != replaced {
			t.Errorf("another %s: %v is a reason for another cluster", name, got.RequiresReplace)
		}
	}
}
