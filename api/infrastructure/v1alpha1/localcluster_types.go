package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalClusterSpec is what can be chosen about a cluster of processes.
type LocalClusterSpec struct {
	// controlPlaneEndpoint is where the cluster's API is served, a loopback address. Left empty,
	// a free address is chosen.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// failureDomains are zones the cluster's machines pretend to be in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`
}

// FailureDomain is one zone.
type FailureDomain struct {
	// name of the zone; machines carry it as the label topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// controlPlane says whether control-plane machines may be placed here; the default is yes.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`
}

// LocalClusterStatus is what was observed.
// +kubebuilder:validation:MinProperties=1
type LocalClusterStatus struct {
	// conditions of the object: Ready, HostRunning, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization tells Cluster API how far the cluster is.
	// +optional
	Initialization LocalInitialization `json:"initialization,omitempty,omitzero"`

	// failureDomains Cluster API spreads machines over.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// addresses is the block of loopback addresses that belongs to the cluster's machines.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	Addresses string `json:"addresses,omitempty"`
}

// LocalInitialization is what Cluster API's contract asks for.
// +kubebuilder:validation:MinProperties=1
type LocalInitialization struct {
	// provisioned is true once the infrastructure is there; it never becomes false again.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalCluster is the infrastructure of a cluster that consists of processes on one machine.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclusters,scope=Namespaced,categories=cluster-api,shortName=lc
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-local","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint.host`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec LocalClusterSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status LocalClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's condition helpers.
func (c *LocalCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions is for Cluster API's condition helpers.
func (c *LocalCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// LocalClusterList is a list of LocalClusters.
// +kubebuilder:object:root=true
type LocalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalCluster `json:"items"`
}

// LocalClusterTemplateSpec holds the template.
type LocalClusterTemplateSpec struct {
	// template is what clusters are made from.
	// +required
	Template LocalClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// LocalClusterTemplateResource is what clusters are made from.
type LocalClusterTemplateResource struct {
	// metadata holds labels and annotations for the clusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the clusters.
	// +required
	Spec LocalClusterSpec `json:"spec"`
}

// LocalClusterTemplate is what a ClusterClass refers to.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclustertemplates,scope=Namespaced,categories=cluster-api,shortName=lct
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-local","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// +optional
	Spec LocalClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// LocalClusterTemplateList is a list of LocalClusterTemplates.
// +kubebuilder:object:root=true
type LocalClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalClusterTemplate `json:"items"`
}
