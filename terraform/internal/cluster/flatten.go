package cluster

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// flatten writes a cluster, as the plane has it, into the model that was planned or read before. What means the same
// stays as it was written: an empty list and none, "" and null.
func flatten(ctx context.Context, m *model, o *v1alpha1.WorkloadCluster) error {
	imported := m.UID.IsNull() // of a new one it is unknown
	s := &o.Spec
	m.ID = types.StringValue(m.Tenant.ValueString() + "/" + o.Name)
	m.UID, m.Name = types.StringValue(string(o.UID)), types.StringValue(o.Name)
	m.Labels, m.Annotations = flattenOwn(m.Labels, o.Labels, imported), flattenOwn(m.Annotations, o.Annotations, imported)
	m.ProviderName = flattenText(m.ProviderName, s.Provider)
	m.Stack = flattenStack(m.Stack, s.Stack)
	was := m.ControlPlane
	if was == nil {
		was = &controlPlaneModel{}
	}
	m.ControlPlane = &controlPlaneModel{
		Replicas:    types.Int32PointerValue(s.ControlPlane.Replicas),
		MachineType: flattenText(was.MachineType, s.ControlPlane.MachineType),
		Machine:     flattenMachine(s.ControlPlane.Machine),
	}
	m.Workers = flattenWorkers(m.Workers, s.Workers)
	m.OIDC = flattenOIDC(m.OIDC, s.OIDC)
	m.Paused, m.DeletionProtection = types.BoolPointerValue(s.Paused), types.BoolPointerValue(s.DeletionProtection)
	m.Endpoint = flattenText(types.StringNull(), o.Status.Endpoint)
	var err error
	if m.Parameters, err = flattenParameters(m.Parameters, s.Parameters); err != nil {
		return err
	}
	if m.Network, err = flattenNetwork(ctx, s.Network); err != nil {
		return err
	}
	m.Status, err = flattenStatus(ctx, &o.Status)
	return err
}

// flattenOwn returns labels or annotations of those names that are ours; of an imported cluster all but the plane's.
func flattenOwn(was, now map[string]string, imported bool) map[string]string {
	if imported && was == nil {
		was = maps.Clone(now)
		maps.DeleteFunc(was, func(name, _ string) bool { return isOfPlane(name) })
		if len(was) == 0 {
			was = nil
		}
	}
	if was == nil {
		return nil
	}
	out := map[string]string{}
	for name := range was {
		if v, ok := now[name]; ok {
			out[name] = v
		}
	}
	return out
}

// isOfPlane says that a label or annotation is put there by programs, by the domain of its name.
func isOfPlane(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	for _, d := range []string{"polder.dev", "k8s.io", "x-k8s.io", "kubernetes.io"} {
		if ok && (domain == d || strings.HasSuffix(domain, "."+d)) {
			return true
		}
	}
	return false
}

// flattenText is null if there is nothing, and it was not written as "" either.
func flattenText(was types.String, now string) types.String {
	if now == "" && (was.IsNull() || was.IsUnknown() || was.ValueString() != "") {
		return types.StringNull()
	}
	return types.StringValue(now)
}

func flattenStack(was *stackModel, now v1alpha1.StackReference) *stackModel {
	if was == nil {
		was = &stackModel{}
	}
	return &stackModel{
		Name: flattenText(was.Name, now.Name), KubernetesVersion: flattenText(was.KubernetesVersion, now.KubernetesVersion),
		Channel: flattenText(was.Channel, string(now.Channel)), Version: flattenText(was.Version, now.Version),
	}
}

func flattenMachine(now *v1alpha1.MachineShape) *machineModel {
	if now == nil {
		return nil
	}
	out := &machineModel{CPU: types.Int32Value(now.CPU), Memory: newQuantity(now.Memory.String()), Disk: nullQuantity()}
	if now.Disk != nil {
		out.Disk = newQuantity(now.Disk.String())
	}
	return out
}

// flattenWorkers takes for granted that pools of one name are the same.
func flattenWorkers(was []workerModel, now []v1alpha1.WorkerPool) []workerModel {
	if len(now) == 0 {
		return was[:0:0] // none is none, and null null
	}
	before := map[string]workerModel{}
	for _, w := range was {
		before[w.Name.ValueString()] = w
	}
	out := make([]workerModel, len(now))
	for i := range now {
		b, w := before[now[i].Name], &now[i]
		out[i] = workerModel{
			Name: types.StringValue(w.Name), Replicas: types.Int32PointerValue(w.Replicas),
			MachineType: flattenText(b.MachineType, w.MachineType), Machine: flattenMachine(w.Machine),
			Labels: w.Labels, Taints: flattenTaints(b.Taints, w.Taints), Zones: w.Zones,
		}
		if len(w.Labels) == 0 && b.Labels != nil {
			out[i].Labels = map[string]string{}
		}
		if len(w.Zones) == 0 && b.Zones != nil {
			out[i].Zones = []string{}
		}
	}
	return out
}

func flattenTaints(was []taintModel, now []v1alpha1.Taint) []taintModel {
	if len(now) == 0 {
		return was[:0:0]
	}
	values := map[[2]string]types.String{}
	for _, t := range was {
		values[[2]string{t.Key.ValueString(), t.Effect.ValueString()}] = t.Value
	}
	out := make([]taintModel, len(now))
	for i, t := range now {
		out[i] = taintModel{
			Key: types.StringValue(t.Key), Effect: types.StringValue(string(t.Effect)),
			Value: flattenText(values[[2]string{t.Key, string(t.Effect)}], t.Value),
		}
	}
	return out
}

func flattenOIDC(was *oidcModel, now *v1alpha1.OIDC) *oidcModel {
	if now == nil {
		return nil
	}
	if was == nil {
		was = &oidcModel{}
	}
	return &oidcModel{
		IssuerURL:      flattenText(was.IssuerURL, now.IssuerURL),
		ClientID:       flattenText(was.ClientID, now.ClientID),
		UsernameClaim:  flattenText(was.UsernameClaim, now.UsernameClaim),
		GroupsClaim:    flattenText(was.GroupsClaim, now.GroupsClaim),
		UsernamePrefix: flattenText(was.UsernamePrefix, now.UsernamePrefix),
		GroupsPrefix:   flattenText(was.GroupsPrefix, now.GroupsPrefix),
	}
}

func flattenNetwork(ctx context.Context, now v1alpha1.Network) (types.Object, error) {
	pods, diags := types.ListValueFrom(ctx, types.StringType, now.PodCIDRs)
	services, d := types.ListValueFrom(ctx, types.StringType, now.ServiceCIDRs)
	diags.Append(d...)
	o, d := types.ObjectValueFrom(ctx, attributeTypes(networkAttributes()), networkModel{pods, services})
	diags.Append(d...)
	return o, asError(diags)
}

func flattenStatus(ctx context.Context, s *v1alpha1.WorkloadClusterStatus) (types.Object, error) {
	o, diags := types.ObjectValueFrom(ctx, attributeTypes(statusAttributes()), statusModel{
		Phase: types.StringValue(string(s.Phase)), Message: types.StringValue(s.Message),
		Actor: types.StringValue(string(s.Actor)), NextStep: types.StringValue(s.NextStep),
		KubernetesVersion: types.StringValue(s.Versions.Kubernetes), Release: types.StringValue(s.Versions.Release),
	})
	return o, asError(diags)
}
