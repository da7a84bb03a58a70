package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderStatus is what a provider says of itself.
type ProviderStatus struct {
	// title is what people call the infrastructure.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// version of the provider's program.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// stackProvider is the first part of the names of releases it can use.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	StackProvider string `json:"stackProvider,omitempty"`

	// capabilities are what it can do beside the least that every provider can.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Capabilities []string `json:"capabilities,omitempty"`

	// isolation says what keeps the clusters of one customer apart from those of others and from the plane.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Isolation string `json:"isolation,omitempty"`

	// machineTypes are what machines it has.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	MachineTypes []MachineType `json:"machineTypes,omitempty"`

	// anyShape says that it makes machines of any shape, so that every portable name works.
	// +optional
	AnyShape bool `json:"anyShape,omitempty"`

	// zones are those that pools of workers can name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Zones []string `json:"zones,omitempty"`

	// parameters is the schema of parameters that the provider itself takes, beside those of the stack.
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// admission is where the provider says what only it can know of WorkloadClusters that name it. The plane asks
	// there; without it the provider runs in the plane itself.
	// +optional
	Admission *ProviderAdmission `json:"admission,omitempty"`

	// lastSeenTime is when the provider last said that it is there; it does so every five minutes.
	// +optional
	LastSeenTime *metav1.Time `json:"lastSeenTime,omitempty"`

	// conditions of the object: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderAdmission is a webhook.
type ProviderAdmission struct {
	// url of the webhook.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://')",message="it begins with https://"
	URL string `json:"url,omitempty"`

	// caBundle vouches for it, in PEM form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	CABundle string `json:"caBundle,omitempty"`
}

// MachineType is one kind of machine of a provider.
type MachineType struct {
	// name is the provider's own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// portable is the name as the standard scs-0100 has it; without it the type is the provider's own and not
	// portable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Portable string `json:"portable,omitempty"`

	// cpu is the number of virtual CPUs.
	// +optional
	CPU int32 `json:"cpu,omitempty"`

	// memoryMiB is the memory.
	// +optional
	MemoryMiB int32 `json:"memoryMiB,omitempty"`

	// diskGB is the root disk; 0 if it has none of its own.
	// +optional
	DiskGB int32 `json:"diskGB,omitempty"`
}

// Provider describes a provider that is installed. It is written by the provider itself; a WorkloadCluster
// names it in spec.provider.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=providers,scope=Cluster,categories=kaas
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.status.title`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Capabilities",type=string,priority=1,JSONPath=`.status.capabilities`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Provider struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard. The name is that of the provider.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the provider says of itself.
	// +optional
	Status ProviderStatus `json:"status,omitempty,omitzero"`
}

// ProviderList is a list of Providers.
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}
