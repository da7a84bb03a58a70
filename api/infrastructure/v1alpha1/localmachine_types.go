package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalMachineSpec is what can be chosen about a machine of processes.
type LocalMachineSpec struct {
	// providerID identifies the machine to its node. It is chosen by the provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// capacity the node pretends to have; what is not given is 4 cores, 8Gi of memory, 100Gi of
	// disk and 110 pods.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeLabels are put on the node when it registers, as a kubelet's --node-labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints are put on the node when it registers, beside those of the kubeadm configuration.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`
}

// LocalMachineStatus is what was observed.
// +kubebuilder:validation:MinProperties=1
type LocalMachineStatus struct {
	// conditions of the object: Ready, Booted, ProcessesRunning, ConfigurationHonored, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization tells Cluster API how far the machine is.
	// +optional
	Initialization LocalInitialization `json:"initialization,omitempty,omitzero"`

	// addresses of the machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain the machine pretends to be in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
}

// LocalMachine is a machine that consists of processes, or of a simulated node.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachines,scope=Namespaced,categories=cluster-api,shortName=lm
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-local","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec LocalMachineSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status LocalMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's condition helpers.
func (m *LocalMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions is for Cluster API's condition helpers.
func (m *LocalMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// LocalMachineList is a list of LocalMachines.
// +kubebuilder:object:root=true
type LocalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalMachine `json:"items"`
}

// LocalMachineTemplateSpec holds the template.
type LocalMachineTemplateSpec struct {
	// template is what machines are made from; it cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a machine template cannot be changed; make a new one and refer to it"
	Template LocalMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// LocalMachineTemplateResource is what machines are made from.
type LocalMachineTemplateResource struct {
	// metadata holds labels and annotations for the machines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the machines.
	// +required
	Spec LocalMachineSpec `json:"spec"`
}

// LocalMachineTemplateStatus tells an autoscaler what a machine would have.
type LocalMachineTemplateStatus struct {
	// capacity of a node made from the template.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// LocalMachineTemplate is what machine deployments and control planes refer to.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localmachinetemplates,scope=Namespaced,categories=cluster-api,shortName=lmt
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","cluster.x-k8s.io/provider=infrastructure-local","clusterctl.cluster.x-k8s.io="}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// +optional
	Spec LocalMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is for autoscalers.
	// +optional
	Status LocalMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// LocalMachineTemplateList is a list of LocalMachineTemplates.
// +kubebuilder:object:root=true
type LocalMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalMachineTemplate `json:"items"`
}
