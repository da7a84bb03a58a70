package machine

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kubeadmtypes "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterConfiguration is kubeadm's ClusterConfiguration for a control plane, from the Machine's KubeadmConfig. Cluster
// API puts it into the bootstrap data of the first one only; the others would ask the workload cluster, which its
// administrator can make say anything. It is nil for other machines, and for those without a KubeadmConfig.
func (r *Reconciler) clusterConfiguration(ctx context.Context, s *scope) ([]byte, error) {
	ref := s.machine.Spec.Bootstrap.ConfigRef
	if !util.IsControlPlaneMachine(s.machine) || ref.Kind != "KubeadmConfig" ||
		ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return nil, nil
	}
	var c bootstrapv1.KubeadmConfig
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.local.Namespace, Name: ref.Name}, &c); err != nil {
		return nil, fmt.Errorf("reading the kubeadm configuration: %w", err)
	}
	b, err := marshalClusterConfiguration(&c.Spec, s.cluster, s.machine.Spec.Version)
	if err != nil {
		return nil, fmt.Errorf("reading KubeadmConfig %s: %w", ref.Name, err)
	}
	return b, nil
}

// marshalClusterConfiguration adds what is said elsewhere, as Cluster API does for the first control plane.
func marshalClusterConfiguration(
	spec *bootstrapv1.KubeadmConfigSpec, cluster *clusterv1.Cluster, version string,
) ([]byte, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", version, err)
	}
	c := spec.ClusterConfiguration.DeepCopy()
	if c.ControlPlaneEndpoint == "" && cluster.Spec.ControlPlaneEndpoint.IsValid() {
		c.ControlPlaneEndpoint = cluster.Spec.ControlPlaneEndpoint.String()
	}
	data := &upstream.AdditionalData{ClusterName: ptr.To(cluster.Name), KubernetesVersion: ptr.To(version)}
	network := cluster.Spec.ClusterNetwork
	if network.ServiceDomain != "" {
		data.DNSDomain = ptr.To(network.ServiceDomain)
	}
	if len(network.Services.CIDRBlocks) > 0 {
		data.ServiceSubnet = ptr.To(network.Services.String())
	}
	if len(network.Pods.CIDRBlocks) > 0 {
		data.PodSubnet = ptr.To(network.Pods.String())
	}
	out, err := kubeadmtypes.MarshalClusterConfigurationForVersion(c, v, data)
	return []byte(out), err
}
