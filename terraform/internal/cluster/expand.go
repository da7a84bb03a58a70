package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// expand makes a cluster of a model, as the plane takes it. What is null or not known yet is left out.
func expand(ctx context.Context, m *model) (*v1alpha1.WorkloadCluster, error) {
	o := &v1alpha1.WorkloadCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkloadCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: m.Name.ValueString(), Labels: m.Labels, Annotations: m.Annotations},
	}
	s := &o.Spec
	s.Provider = m.ProviderName.ValueString()
	s.Paused, s.DeletionProtection = m.Paused.ValueBoolPointer(), m.DeletionProtection.ValueBoolPointer()
	if m.Stack != nil {
		s.Stack = v1alpha1.StackReference{
			Name: m.Stack.Name.ValueString(), KubernetesVersion: m.Stack.KubernetesVersion.ValueString(),
			Channel: v1alpha1.Channel(m.Stack.Channel.ValueString()), Version: m.Stack.Version.ValueString(),
		}
	}
	var err error
	if c := m.ControlPlane; c != nil {
		s.ControlPlane.Replicas = c.Replicas.ValueInt32Pointer()
		if s.ControlPlane.MachineSelection, err = expandMachine(c.MachineType, c.Machine); err != nil {
			return nil, fmt.Errorf("control_plane: %w", err)
		}
	}
	for i := range m.Workers {
		w, err := expandWorker(&m.Workers[i])
		if err != nil {
			return nil, fmt.Errorf("workers[%d]: %w", i, err)
		}
		s.Workers = append(s.Workers, w)
	}
	if s.Network, err = expandNetwork(ctx, m.Network); err != nil {
		return nil, err
	}
	if c := m.OIDC; c != nil {
		s.OIDC = &v1alpha1.OIDC{
			IssuerURL: c.IssuerURL.ValueString(), ClientID: c.ClientID.ValueString(),
			UsernameClaim: c.UsernameClaim.ValueString(), GroupsClaim: c.GroupsClaim.ValueString(),
			UsernamePrefix: c.UsernamePrefix.ValueString(), GroupsPrefix: c.GroupsPrefix.ValueString(),
		}
	}
	s.Parameters, err = expandParameters(m.Parameters)
	return o, err
}

func expandMachine(machineType types.String, m *machineModel) (v1alpha1.MachineSelection, error) {
	out := v1alpha1.MachineSelection{MachineType: machineType.ValueString()}
	if m == nil {
		return out, nil
	}
	out.Machine = &v1alpha1.MachineShape{CPU: m.CPU.ValueInt32()}
	var err error
	if out.Machine.Memory, err = m.Memory.parse(); err != nil {
		return out, fmt.Errorf("machine.memory: %w", err)
	}
	if m.Disk.IsNull() || m.Disk.IsUnknown() {
		return out, nil
	}
	disk, err := m.Disk.parse()
	if err != nil {
		return out, fmt.Errorf("machine.disk: %w", err)
	}
	out.Machine.Disk = &disk
	return out, nil
}

func expandWorker(m *workerModel) (v1alpha1.WorkerPool, error) {
	out := v1alpha1.WorkerPool{
		Name: m.Name.ValueString(), Replicas: m.Replicas.ValueInt32Pointer(), Labels: m.Labels, Zones: m.Zones,
	}
	for _, t := range m.Taints {
		out.Taints = append(out.Taints, v1alpha1.Taint{
			Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: corev1.TaintEffect(t.Effect.ValueString()),
		})
	}
	var err error
	out.MachineSelection, err = expandMachine(m.MachineType, m.Machine)
	return out, err
}

func expandNetwork(ctx context.Context, in types.Object) (out v1alpha1.Network, err error) {
	if in.IsNull() || in.IsUnknown() {
		return out, nil
	}
	var m networkModel
	diags := in.As(ctx, &m, basetypes.ObjectAsOptions{})
	for to, from := range map[*[]string]types.List{&out.PodCIDRs: m.PodCIDRs, &out.ServiceCIDRs: m.ServiceCIDRs} {
		if !from.IsNull() && !from.IsUnknown() {
			diags.Append(from.ElementsAs(ctx, to, false)...)
		}
	}
	return out, asError(diags)
}

// asError makes one error of what the framework found wrong with a value.
func asError(diags diag.Diagnostics) error {
	var all []error
	for _, d := range diags.Errors() {
		all = append(all, fmt.Errorf("%s: %s", d.Summary(), d.Detail()))
	}
	return errors.Join(all...)
}
