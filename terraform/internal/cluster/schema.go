package cluster

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int32default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// newSchema describes the resource. What it says of the spec is what v1alpha1.WorkloadClusterSpec says; a test compares
// them, and the defaults with those of the plane's definition.
func newSchema(ctx context.Context) (schema.Schema, diag.Diagnostics) {
	controlPlane, diags := defaultControlPlane(ctx)
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	keep := []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()}
	return schema.Schema{
		Description: "A Kubernetes cluster.",
		Attributes: map[string]schema.Attribute{
			"id":     schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "TENANT/NAME, by which a cluster is imported."},
			"uid":    schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "What tells it from an earlier or later cluster of its name."},
			"tenant": schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "Name of the tenant. Another one needs another cluster."},
			"name":   schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "Name of the cluster. Another one needs another cluster."},
			"labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, Description: "Labels of the cluster. Those that others have put on it stay.",
			},
			"annotations": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, Description: "Annotations of the cluster. Those that others have put on it stay.",
			},
			"provider_name": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: keepOrReplace(),
				Description: "Who makes the cluster; it may be left out where there is only one. Another one needs another cluster.",
			},
			"stack": schema.SingleNestedAttribute{Required: true, Attributes: stackAttributes(), Description: "What the cluster is made of."},
			"control_plane": schema.SingleNestedAttribute{
				Optional: true, Computed: true, Default: controlPlane, Attributes: controlPlaneAttributes(),
				Description: "The part that runs Kubernetes itself.",
			},
			"workers": schema.ListNestedAttribute{
				Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: workerAttributes()},
				Description: "Pools of machines for what runs in the cluster.",
			},
			"network": schema.SingleNestedAttribute{
				Optional: true, Computed: true, Attributes: networkAttributes(),
				PlanModifiers: []planmodifier.Object{objectplanmodifier.UseNonNullStateForUnknown()},
				Description:   "The cluster's inner network. Another one needs another cluster.",
			},
			"oidc":       schema.SingleNestedAttribute{Optional: true, Attributes: oidcAttributes(), Description: "Lets users of an OpenID Connect issuer log in."},
			"parameters": schema.DynamicAttribute{Optional: true, Description: "Parameters of the stack, by their names; the stack says which there are."},
			"paused": schema.BoolAttribute{
				Optional: true, Description: "Leaves the cluster as it is: nothing is changed, repaired or updated, and nobody waits for it.",
			},
			"deletion_protection": schema.BoolAttribute{Optional: true, Description: "Refuses to delete the cluster until it is taken away."},
			"endpoint":            schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "URL of the cluster's API."},
			"status":              schema.SingleNestedAttribute{Computed: true, Attributes: statusAttributes(), Description: "What was observed when it was last read."},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait until a new cluster is ready, such as 45m; 30m if left out.",
				UpdateDescription: "How long to wait until a changed cluster is ready; 60m if left out.",
				DeleteDescription: "How long to wait until a deleted cluster is gone; 30m if left out.",
			}),
		},
	}, diags
}

// keepOrReplace is for what the plane chooses if it is left out, and nobody can change.
func keepOrReplace() []planmodifier.String {
	return []planmodifier.String{
		stringplanmodifier.UseNonNullStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured(),
	}
}

func stackAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			Description: "Name of the stack. Another one needs another cluster.",
		},
		"kubernetes_version": schema.StringAttribute{
			Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			Description: "The minor of Kubernetes, for example 1.37. A new cluster gets the newest without it. It can be raised by one at a time and never be lowered.",
		},
		"channel": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(string(v1alpha1.ChannelStable)),
			Description: "Where new releases come from: stable (the default) or custom.",
		},
		"version": schema.StringAttribute{Optional: true, Description: "Pins a release, for example v3. Without it the cluster follows the newest."},
	}
}

// machineAttributes are those of whoever has machines, beside its own.
func machineAttributes(own map[string]schema.Attribute) map[string]schema.Attribute {
	own["replicas"] = schema.Int32Attribute{Optional: true, Computed: true, Default: int32default.StaticInt32(1), Description: "How many machines; 1 if left out."}
	own["machine_type"] = schema.StringAttribute{Optional: true, Description: "A portable name such as SCS-2V-4, or one of the provider's own."}
	own["machine"] = schema.SingleNestedAttribute{
		Optional: true, Description: "In place of machine_type: the least that a machine must have.",
		Attributes: map[string]schema.Attribute{
			"cpu":    schema.Int32Attribute{Required: true, Description: "Virtual CPUs."},
			"memory": schema.StringAttribute{Required: true, CustomType: quantityType{}, Description: "For example 4Gi."},
			"disk":   schema.StringAttribute{Optional: true, CustomType: quantityType{}, Description: "The root disk, for example 20Gi."},
		},
	}
	return own
}

func controlPlaneAttributes() map[string]schema.Attribute {
	return machineAttributes(map[string]schema.Attribute{})
}

func workerAttributes() map[string]schema.Attribute {
	return machineAttributes(map[string]schema.Attribute{
		"name":   schema.StringAttribute{Required: true, Description: "Name of the pool."},
		"labels": schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Labels of the pool's nodes."},
		"taints": schema.ListNestedAttribute{
			Optional: true, Description: "Taints of the pool's nodes.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":    schema.StringAttribute{Required: true, Description: "Key of the taint."},
				"value":  schema.StringAttribute{Optional: true, Description: "Value of the taint."},
				"effect": schema.StringAttribute{Required: true, Description: "NoSchedule, PreferNoSchedule or NoExecute."},
			}},
		},
		"zones": schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Zones that the machines are spread over."},
	})
}

func networkAttributes() map[string]schema.Attribute {
	ranges := func(what string) schema.ListAttribute {
		return schema.ListAttribute{
			Optional: true, Computed: true, ElementType: types.StringType,
			PlanModifiers: []planmodifier.List{
				listplanmodifier.UseNonNullStateForUnknown(), listplanmodifier.RequiresReplaceIfConfigured(),
			},
			Description: "Ranges of addresses for " + what + ": one, or one of IPv4 and one of IPv6.",
		}
	}
	return map[string]schema.Attribute{"pod_cidrs": ranges("pods"), "service_cidrs": ranges("services")}
}

func oidcAttributes() map[string]schema.Attribute {
	optional := func(what string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: what + "; without it, what the stack says."}
	}
	return map[string]schema.Attribute{
		"issuer_url":      schema.StringAttribute{Required: true, Description: "Begins with https:// and is what tokens have as their issuer."},
		"client_id":       schema.StringAttribute{Required: true, Description: "Whom tokens must be for."},
		"username_claim":  optional("The claim that is the user's name"),
		"groups_claim":    optional("The claim that has the user's groups"),
		"username_prefix": optional("What names of users begin with"),
		"groups_prefix":   optional("What names of groups begin with"),
	}
}

func statusAttributes() map[string]schema.Attribute {
	text := func(what string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, Description: what}
	}
	return map[string]schema.Attribute{
		"phase":              text("Where the cluster is, in one word: Ready, if all is as it should be."),
		"message":            text("What is happening, or why it waits."),
		"actor":              text("Who must act: Customer, PlatformOperator or Nobody."),
		"next_step":          text("What the actor is to do."),
		"kubernetes_version": text("The version of Kubernetes that runs."),
		"release":            text("The release of the stack that it was made of, or last updated to."),
	}
}

// defaultControlPlane is one machine of the provider's choice.
func defaultControlPlane(ctx context.Context) (defaults.Object, diag.Diagnostics) {
	attributes := controlPlaneAttributes()
	ts, values := attributeTypes(attributes), map[string]attr.Value{}
	var diags diag.Diagnostics
	for name, t := range ts {
		v, err := t.ValueFromTerraform(ctx, tftypes.NewValue(t.TerraformType(ctx), nil))
		if err != nil {
			diags.AddError("The schema of clusters has no default", err.Error())
		}
		values[name] = v
	}
	values["replicas"] = types.Int32Value(1)
	o, d := types.ObjectValue(ts, values)
	return objectdefault.StaticValue(o), append(diags, d...)
}

func attributeTypes(attributes map[string]schema.Attribute) map[string]attr.Type {
	out := map[string]attr.Type{}
	for name, a := range attributes {
		out[name] = a.GetType()
	}
	return out
}
