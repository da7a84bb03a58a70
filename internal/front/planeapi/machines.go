package planeapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Machine is one of a cluster, as its tenant sees it.
type Machine struct {
	Name         string    `json:"name" doc:"Name of the machine."`
	ControlPlane bool      `json:"controlPlane" doc:"Whether it is one of the control plane."`
	Pool         string    `json:"pool,omitempty" doc:"The pool of spec.workers that it belongs to."`
	Phase        string    `json:"phase" doc:"How far it is, for people." example:"Running"`
	Ready        bool      `json:"ready" doc:"Whether it can be used."`
	Message      string    `json:"message,omitempty" doc:"What it waits for, or what is wrong with it."`
	Kubernetes   string    `json:"kubernetes,omitempty" doc:"The exact version of Kubernetes." example:"v1.36.3"`
	Node         string    `json:"node,omitempty" doc:"Name of its node in the cluster, once there is one."`
	Created      time.Time `json:"creationTimestamp" doc:"When it was asked for."`
}

// MachinePage is the answer of planepath.Machines.
type MachinePage struct {
	Items    []Machine `json:"items"`
	Continue string    `json:"continue,omitempty"` // if there are more
}

// machineReader answers which machines a cluster has. Members have no right to the kinds of Cluster API, where machines
// are, and are told here what of them is theirs to know.
type machineReader struct {
	tenants  client.Reader // also of namespaces and WorkloadClusters
	machines client.Reader
}

func (m *machineReader) serve(w http.ResponseWriter, r *http.Request) {
	name, cluster, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, planepath.Machines), "/")
	limit, bad := readLimit(r, maxPage)
	namespace := ""
	if bad == nil {
		namespace, bad = m.namespaceOf(r, name, cluster)
	}
	if bad != nil {
		writeError(w, bad)
		return
	}
	var l clusterv1.MachineList
	if err := m.machines.List(r.Context(), &l, client.InNamespace(namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}, client.UnsafeDisableDeepCopy); err != nil {
		writeError(w, apierrors.NewInternalError(err))
		return
	}
	writeJSON(w, newMachinePage(l.Items, limit, r.URL.Query().Get("continue")))
}

// namespaceOf returns that of a tenant's cluster. That a tenant names a namespace does not make it its own: see
// tenancy.Of.
func (m *machineReader) namespaceOf(r *http.Request, tenant, cluster string) (string, *apierrors.StatusError) {
	t := &v1alpha1.Tenant{}
	if err := m.tenants.Get(r.Context(), client.ObjectKey{Name: tenant}, t); err != nil {
		return "", notFound("tenants", tenant)
	}
	owner, err := tenancy.Of(r.Context(), m.tenants, t.NamespaceName())
	if err != nil || owner == nil || owner.Name != tenant {
		return "", notFound("tenants", tenant)
	}
	c := &v1alpha1.WorkloadCluster{}
	if err := m.tenants.Get(r.Context(), client.ObjectKey{Namespace: t.NamespaceName(), Name: cluster}, c); err != nil {
		return "", notFound("workloadclusters", cluster)
	}
	return t.NamespaceName(), nil
}

func notFound(resource, name string) *apierrors.StatusError {
	return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(resource).GroupResource(), name)
}

// newMachinePage returns those after a name, ordered by name.
func newMachinePage(all []clusterv1.Machine, limit int, after string) MachinePage {
	out := MachinePage{Items: []Machine{}}
	for i := range all {
		if all[i].Name > after {
			out.Items = append(out.Items, newMachine(&all[i]))
		}
	}
	slices.SortFunc(out.Items, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	if len(out.Items) > limit {
		out.Items, out.Continue = out.Items[:limit], out.Items[limit-1].Name
	}
	return out
}

func newMachine(m *clusterv1.Machine) Machine {
	out := Machine{
		Name: m.Name, Phase: cmp.Or(m.Status.Phase, string(clusterv1.MachinePhasePending)), Kubernetes: m.Spec.Version,
		Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp.UTC(),
		Ready: meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineReadyCondition),
	}
	if !m.DeletionTimestamp.IsZero() {
		out.Phase = string(clusterv1.MachinePhaseDeleting)
	}
	if _, out.ControlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]; !out.ControlPlane {
		out.Pool = cmp.Or(m.Labels[v1alpha1.PoolLabel], m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel])
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineReadyCondition); c != nil &&
		c.Status != metav1.ConditionTrue {
		out.Message = cmp.Or(c.Message, c.Reason)
	}
	return out
}
