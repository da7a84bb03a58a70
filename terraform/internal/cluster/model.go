package cluster

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// model is a cluster as configuration, plan and state have it.
type model struct {
	ID                 types.String       `tfsdk:"id"`
	UID                types.String       `tfsdk:"uid"`
	Tenant             types.String       `tfsdk:"tenant"`
	Name               types.String       `tfsdk:"name"`
	Labels             map[string]string  `tfsdk:"labels"`
	Annotations        map[string]string  `tfsdk:"annotations"`
	ProviderName       types.String       `tfsdk:"provider_name"`
	Stack              *stackModel        `tfsdk:"stack"`
	ControlPlane       *controlPlaneModel `tfsdk:"control_plane"`
	Workers            []workerModel      `tfsdk:"workers"`
	Network            types.Object       `tfsdk:"network"` // unknown until the plane has chosen
	OIDC               *oidcModel         `tfsdk:"oidc"`
	Parameters         types.Dynamic      `tfsdk:"parameters"`
	Paused             types.Bool         `tfsdk:"paused"`
	DeletionProtection types.Bool         `tfsdk:"deletion_protection"`
	Endpoint           types.String       `tfsdk:"endpoint"`
	Status             types.Object       `tfsdk:"status"`
	Timeouts           timeouts.Value     `tfsdk:"timeouts"`
}

type stackModel struct {
	Name              types.String `tfsdk:"name"`
	KubernetesVersion types.String `tfsdk:"kubernetes_version"`
	Channel           types.String `tfsdk:"channel"`
	Version           types.String `tfsdk:"version"`
}

type machineModel struct {
	CPU    types.Int32 `tfsdk:"cpu"`
	Memory quantity    `tfsdk:"memory"`
	Disk   quantity    `tfsdk:"disk"`
}

type controlPlaneModel struct {
	Replicas    types.Int32   `tfsdk:"replicas"`
	MachineType types.String  `tfsdk:"machine_type"`
	Machine     *machineModel `tfsdk:"machine"`
}

type workerModel struct {
	Name        types.String      `tfsdk:"name"`
	Replicas    types.Int32       `tfsdk:"replicas"`
	MachineType types.String      `tfsdk:"machine_type"`
	Machine     *machineModel     `tfsdk:"machine"`
	Labels      map[string]string `tfsdk:"labels"`
	Taints      []taintModel      `tfsdk:"taints"`
	Zones       []string          `tfsdk:"zones"`
}

type taintModel struct {
	Key    types.String `tfsdk:"key"`
	Value  types.String `tfsdk:"value"`
	Effect types.String `tfsdk:"effect"`
}

type networkModel struct {
	PodCIDRs     types.List `tfsdk:"pod_cidrs"`
	ServiceCIDRs types.List `tfsdk:"service_cidrs"`
}

type oidcModel struct {
	IssuerURL      types.String `tfsdk:"issuer_url"`
	ClientID       types.String `tfsdk:"client_id"`
	UsernameClaim  types.String `tfsdk:"username_claim"`
	GroupsClaim    types.String `tfsdk:"groups_claim"`
	UsernamePrefix types.String `tfsdk:"username_prefix"`
	GroupsPrefix   types.String `tfsdk:"groups_prefix"`
}

type statusModel struct {
	Phase             types.String `tfsdk:"phase"`
	Message           types.String `tfsdk:"message"`
	Actor             types.String `tfsdk:"actor"`
	NextStep          types.String `tfsdk:"next_step"`
	KubernetesVersion types.String `tfsdk:"kubernetes_version"`
	Release           types.String `tfsdk:"release"`
}
