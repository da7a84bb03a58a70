// Package provider is the Terraform provider "polder": where the plane is, who asks it, and what can be asked for.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/polder-kaas/polder/terraform/internal/cluster"
	"github.com/polder-kaas/polder/terraform/internal/connect"
	"github.com/polder-kaas/polder/terraform/internal/kubeconfig"
)

// Provider is the provider.
type Provider struct {
	version string
	getenv  func(string) string
}

var _ provider.ProviderWithEphemeralResources = (*Provider)(nil)

// New returns what makes the provider of a version, with variables of its environment.
func New(version string, getenv func(string) string) func() provider.Provider {
	return func() provider.Provider { return &Provider{version, getenv} }
}

// model is the configuration.
type model struct {
	Endpoint      types.String `tfsdk:"endpoint"`
	Token         types.String `tfsdk:"token"`
	TokenFile     types.String `tfsdk:"token_file"`
	CACertificate types.String `tfsdk:"ca_certificate"`
}

// Metadata names the provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "polder", p.version
}

// Schema describes the configuration.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Kubernetes clusters of a Polder plane, by its REST API.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true, Description: "URL of the plane's REST API, such as https://polder.example.org/v1. Without it: POLDER_ENDPOINT.",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true, Description: "Token of whoever asks, of a robot for example. Without it and token_file: POLDER_TOKEN.",
			},
			"token_file": schema.StringAttribute{
				Optional: true, Description: "A file with the token, which is read again whenever it is needed. Without it and token: POLDER_TOKEN_FILE.",
			},
			"ca_certificate": schema.StringAttribute{
				Optional: true, Description: "Certificate, in PEM form, of the authority that the plane's is of. Without it: those of the system.",
			},
		},
	}
}

// Configure makes the client that all resources use.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	for name, v := range map[string]types.String{
		"endpoint": m.Endpoint, "token": m.Token, "token_file": m.TokenFile, "ca_certificate": m.CACertificate,
	} {
		if v.IsUnknown() {
			resp.Diagnostics.AddAttributeError(path.Root(name), "The plane is not known yet",
				name+" comes of something that is not made yet; make that first, in a configuration of its own or with -target.")
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	s := connect.Settings{
		Endpoint: m.Endpoint.ValueString(), Token: m.Token.ValueString(), TokenFile: m.TokenFile.ValueString(),
		CA:        m.CACertificate.ValueString(),
		UserAgent: "terraform-provider-polder/" + p.version + " terraform/" + req.TerraformVersion,
	}
	p.fillIn(&s)
	resp.Diagnostics.Append(check(s)...)
	if resp.Diagnostics.HasError() {
		return
	}
	api, err := s.Client()
	if err != nil {
		resp.Diagnostics.AddError("The plane cannot be asked", err.Error())
		return
	}
	resp.ResourceData, resp.EphemeralResourceData = api, api
}

// check says what is missing, and what contradicts itself.
func check(s connect.Settings) (diags diag.Diagnostics) {
	switch {
	case s.Endpoint == "":
		diags.AddAttributeError(path.Root("endpoint"), "It is not said where the plane is",
			"Set endpoint, or POLDER_ENDPOINT.")
	case s.Token != "" && s.TokenFile != "":
		diags.AddAttributeError(path.Root("token_file"), "There are two tokens",
			"Set either a token or a file with one, not both.")
	case s.Token == "" && s.TokenFile == "":
		diags.AddAttributeError(path.Root("token"), "It is not said who asks",
			"Set token or token_file, or POLDER_TOKEN or POLDER_TOKEN_FILE.")
	}
	if s.TokenFile != "" {
		if _, err := os.Stat(s.TokenFile); err != nil {
			diags.AddAttributeError(path.Root("token_file"), "The token cannot be read", err.Error())
		}
	}
	return diags
}

// fillIn takes from the environment what the configuration leaves out.
func (p *Provider) fillIn(s *connect.Settings) {
	if s.Endpoint == "" {
		s.Endpoint = p.getenv("POLDER_ENDPOINT")
	}
	if s.Token == "" && s.TokenFile == "" {
		s.Token, s.TokenFile = p.getenv("POLDER_TOKEN"), p.getenv("POLDER_TOKEN_FILE")
	}
}

// Resources are those of the provider.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{cluster.New}
}

// EphemeralResources are those of the provider.
func (p *Provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{kubeconfig.New}
}

// DataSources are those of the provider.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource { return nil }
