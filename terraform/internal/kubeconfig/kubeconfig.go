// Package kubeconfig is the ephemeral resource polder_kubeconfig: access to a cluster for some hours, which is in no
// state and in no plan.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/terraform/internal/connect"
)

// Resource is polder_kubeconfig.
type Resource struct {
	api *client.ClientWithResponses
}

var _ ephemeral.EphemeralResourceWithConfigure = (*Resource)(nil)

// New makes the resource; it knows its plane once it is configured.
func New() ephemeral.EphemeralResource { return &Resource{} }

// model is what is asked for, and what comes of it.
type model struct {
	Tenant               types.String `tfsdk:"tenant"`
	Cluster              types.String `tfsdk:"cluster"`
	UID                  types.String `tfsdk:"uid"`
	Role                 types.String `tfsdk:"role"`
	ExpirationSeconds    types.Int32  `tfsdk:"expiration_seconds"`
	Kubeconfig           types.String `tfsdk:"kubeconfig"`
	Host                 types.String `tfsdk:"host"`
	ClusterCACertificate types.String `tfsdk:"cluster_ca_certificate"`
	ClientCertificate    types.String `tfsdk:"client_certificate"`
	ClientKey            types.String `tfsdk:"client_key"`
	ExpirationTime       types.String `tfsdk:"expiration_time"`
}

// Metadata names the resource.
func (r *Resource) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_kubeconfig"
}

// Schema describes the resource.
func (r *Resource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Access to a cluster for some hours. Its key is made here and sent nowhere.",
		Attributes: map[string]schema.Attribute{
			"tenant":  schema.StringAttribute{Required: true, Description: "Name of the tenant."},
			"cluster": schema.StringAttribute{Required: true, Description: "Name of the cluster."},
			"uid": schema.StringAttribute{
				Optional: true, Description: "uid of the cluster: no other of its name is taken, and while the cluster is still to be made, access is asked for after that.",
			},
			"role":                   schema.StringAttribute{Optional: true, Description: "admin or viewer; viewer if left out."},
			"expiration_seconds":     schema.Int32Attribute{Optional: true, Description: "How long it is valid: from 600 to 28800, eight hours, which is also what is taken if it is left out."},
			"kubeconfig":             schema.StringAttribute{Computed: true, Sensitive: true, Description: "A kubeconfig file."},
			"host":                   schema.StringAttribute{Computed: true, Description: "URL of the cluster's API."},
			"cluster_ca_certificate": schema.StringAttribute{Computed: true, Description: "Authority of the cluster's API, in PEM form."},
			"client_certificate":     schema.StringAttribute{Computed: true, Sensitive: true, Description: "Certificate of the holder, in PEM form."},
			"client_key":             schema.StringAttribute{Computed: true, Sensitive: true, Description: "Key of the certificate, in PEM form."},
			"expiration_time":        schema.StringAttribute{Computed: true, Description: "When access ends."},
		},
	}
}

// Configure takes the client of the provider, which is nil before the provider is configured.
func (r *Resource) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	api, ok := req.ProviderData.(*client.ClientWithResponses)
	if !ok {
		resp.Diagnostics.AddError("The provider is not configured", fmt.Sprintf("it gave a %T", req.ProviderData))
		return
	}
	r.api = api
}

// Open asks for access.
func (r *Resource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.open(ctx, &m); err != nil {
		summary := fmt.Sprintf("There is no access to cluster %s/%s", m.Tenant.ValueString(), m.Cluster.ValueString())
		resp.Diagnostics.Append(connect.Explain(summary, err, locate)...)
		return
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

// open fills in what the plane grants.
func (r *Resource) open(ctx context.Context, m *model) error {
	tenant, name := m.Tenant.ValueString(), m.Cluster.ValueString()
	if m.UID.ValueString() != "" {
		c, err := r.api.GetClusterWithResponse(ctx, tenant, name, &client.GetClusterParams{})
		if err != nil {
			return err
		}
		if err := client.ReadProblem(c.HTTPResponse, c.Body); err != nil {
			return err
		}
		if c.JSON200 == nil || string(c.JSON200.UID) != m.UID.ValueString() {
			return errors.New("another cluster has its name by now")
		}
	}
	key, request, err := certificate.NewKeyAndRequest("polder")
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	res, err := r.api.CreateKubeconfigWithResponse(ctx, tenant, name, client.KubeconfigRequest{
		CertificateRequest: request, ExpirationSeconds: m.ExpirationSeconds.ValueInt32(),
		Role: client.KubeconfigRequestRole(m.Role.ValueString()),
	})
	if err != nil {
		return err
	}
	if err := client.ReadProblem(res.HTTPResponse, res.Body); err != nil {
		return err
	}
	if res.JSON201 == nil {
		return fmt.Errorf("%s: the answer is none of this API; is the endpoint right?", res.HTTPResponse.Status)
	}
	file, err := addKey([]byte(res.JSON201.Kubeconfig), key)
	if err != nil {
		return err
	}
	m.Kubeconfig, m.Host = types.StringValue(string(file)), types.StringValue(res.JSON201.Endpoint)
	m.ClusterCACertificate = types.StringValue(res.JSON201.CertificateAuthority)
	m.ClientCertificate, m.ClientKey = types.StringValue(res.JSON201.Certificate), types.StringValue(string(key))
	m.ExpirationTime = types.StringValue(res.JSON201.ExpirationTime.UTC().Format(time.RFC3339))
	return nil
}

// user is what is read of a kubeconfig to put a key into it; all else stays as it is.
type user struct {
	Name string         `json:"name"`
	User map[string]any `json:"user"`
}

// addKey completes a kubeconfig, which the plane gives without the key that it never saw.
func addKey(file, key []byte) ([]byte, error) {
	all := map[string]any{}
	var of struct {
		Users []user `json:"users"`
	}
	if err := errors.Join(yaml.Unmarshal(file, &all), yaml.Unmarshal(file, &of)); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if len(of.Users) != 1 || of.Users[0].User == nil {
		return nil, errors.New("reading the kubeconfig: it is not for one user")
	}
	of.Users[0].User["client-key-data"] = key // bytes are written in base64, as kubeconfigs have them
	all["users"] = of.Users
	out, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return out, nil
}

// locate returns the attribute that has a part of the request.
func locate(location string) (path.Path, bool) {
	name, ok := map[string]string{
		"path.tenant": "tenant", "path.cluster": "cluster", "body.role": "role",
		"body.expirationSeconds": "expiration_seconds",
	}[location]
	return path.Root(name), ok
}
