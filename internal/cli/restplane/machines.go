package restplane

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/client"
)

// listMachines returns those of one cluster as Cluster API has them: commands ask for them by its label.
func (c *call) listMachines(ctx context.Context) (any, error) {
	cluster, selected := strings.CutPrefix(c.query.Get("labelSelector"), clusterv1.ClusterNameLabel+"=")
	if !selected || !namePattern.MatchString(cluster) {
		return nil, c.forbidden(ctx)
	}
	l := &clusterv1.MachineList{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineList"},
		Items:    []clusterv1.Machine{},
	}
	for token := ""; ; {
		var page client.MachineList
		res, err := c.api.ListMachines(ctx, c.tenant(), cluster,
			&client.ListMachinesParams{PageSize: pageSize, PageToken: token})
		if err := c.read(ctx, res, err, &page); err != nil {
			return nil, err
		}
		for i := range page.Items {
			l.Items = append(l.Items, *NewMachine(c.namespace, cluster, &page.Items[i]))
		}
		if token = page.NextPageToken; token == "" {
			return l, nil
		}
	}
}

// NewMachine returns a machine as Cluster API has it, with what the plane tells members of it.
func NewMachine(namespace, cluster string, m *client.Machine) *clusterv1.Machine {
	out := &clusterv1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: m.Name, CreationTimestamp: metav1.NewTime(m.CreationTimestamp),
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
		},
		Spec: clusterv1.MachineSpec{ClusterName: cluster, Version: m.Kubernetes},
		Status: clusterv1.MachineStatus{
			Phase: m.Phase, NodeRef: clusterv1.MachineNodeReference{Name: m.Node},
			Conditions: []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue}},
		},
	}
	if !m.Ready {
		out.Status.Conditions[0].Status, out.Status.Conditions[0].Message = metav1.ConditionFalse, m.Message
	}
	if m.ControlPlane {
		out.Labels[clusterv1.MachineControlPlaneLabel] = ""
	} else if m.Pool != "" {
		out.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = m.Pool
	}
	return out
}
