package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Channel of releases of a stack.
// +kubebuilder:validation:Enum=stable;custom
type Channel string

// Channels: stable versions such as v3, and all others.
const (
	ChannelStable Channel = "stable"
	ChannelCustom Channel = "custom"
)

// WorkloadClusterSpec is what a customer asks for.
type WorkloadClusterSpec struct {
	// provider is who makes the cluster; the object Provider of this name says what it can do. It may be
	// left out where there is only one. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider,omitempty"`

	// stack is what the cluster is made of.
	// +required
	Stack StackReference `json:"stack,omitempty,omitzero"`

	// controlPlane is the part that runs Kubernetes itself.
	// +optional
	// +kubebuilder:default={}
	ControlPlane ControlPlane `json:"controlPlane,omitempty,omitzero"`

	// workers are pools of machines for what runs in the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Workers []WorkerPool `json:"workers,omitempty"`

	// network is the cluster's inner network. It cannot be changed.
	// +optional
	// +kubebuilder:default={}
	Network Network `json:"network,omitempty,omitzero"`

	// oidc lets users of an OpenID Connect issuer log in.
	// +optional
	OIDC *OIDC `json:"oidc,omitempty"`

	// parameters are those of the stack, by their names; the stack says which there are.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Parameters map[string]apiextensionsv1.JSON `json:"parameters,omitempty"`

	// paused leaves the cluster as it is: nothing is changed, repaired or updated.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// deletionProtection refuses to delete the cluster until it is taken away.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`
}

// StackReference chooses a release of a stack.
type StackReference struct {
	// name of the stack.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// kubernetesVersion is the minor of Kubernetes, for example "1.36". Without it a new cluster gets the
	// newest the stack has. It can be raised by one at a time and never be lowered.
	// +optional
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[0-9]\\\\.[0-9]+$')",message="write the minor of Kubernetes as two numbers in quotes, for example \"1.36\""
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// channel is where new releases come from: stable has versions such as v3, custom all others. The
	// cluster follows the newest release of it.
	// +optional
	// +kubebuilder:default=stable
	Channel Channel `json:"channel,omitempty"`

	// version pins a release, for example v3: the cluster stays at it until another is written here.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`
}

// MachineShape is the least that a machine must have. Amounts have no exponents: to read or compare one such as
// 1e2000000000 takes all memory there is.
type MachineShape struct {
	// cpu is the number of virtual CPUs.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	CPU int32 `json:"cpu,omitempty"`

	// memory of the machine, for example 4Gi.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,24}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// disk is that of the root disk, for example 20Gi; without it the provider chooses.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,24}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`
	Disk *resource.Quantity `json:"disk,omitempty"`
}

// MachineSelection says what machines are like, either by name or by shape.
// +kubebuilder:validation:XValidation:rule="!(has(self.machineType) && size(self.machineType) > 0 && has(self.machine))",message="write either machineType or machine, not both"
type MachineSelection struct {
	// machineType is a portable name as the standard scs-0100 has them, for example SCS-2V-4 for 2 virtual
	// CPUs and 4 GiB of memory, or a name of the provider's own, which other providers do not know. Without
	// it and machine the provider's default is taken.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MachineType string `json:"machineType,omitempty"`

	// machine is a shape; the provider takes the smallest machine that has all of it.
	// +optional
	Machine *MachineShape `json:"machine,omitempty"`
}

// ControlPlane runs Kubernetes itself.
type ControlPlane struct {
	// replicas is 1, 3 or 5. With one, the cluster's API is away while that machine is replaced.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Enum=1;3;5
	Replicas *int32 `json:"replicas,omitempty"`

	MachineSelection `json:",inline"`
}

// WorkerPool is a number of machines that are alike.
type WorkerPool struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// replicas is how many machines there are; 0 is none.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	Replicas *int32 `json:"replicas,omitempty"`

	MachineSelection `json:",inline"`

	// labels are put on the pool's nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// taints are put on the pool's nodes.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`

	// zones are those the machines are spread over evenly; without it the provider chooses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Zones []string `json:"zones,omitempty"`
}

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	// key of the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// effect is NoSchedule, PreferNoSchedule or NoExecute.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}

// Network is a cluster's inner network.
type Network struct {
	// podCIDRs are ranges of addresses for pods: one, or one of IPv4 and one of IPv6.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={"10.244.0.0/16"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=43
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// serviceCIDRs are ranges of addresses for services: one, or one of IPv4 and one of IPv6.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={"10.96.0.0/16"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=43
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`
}

// OIDC is an issuer of OpenID Connect.
type OIDC struct {
	// issuerURL begins with https:// and is what tokens have as their issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	IssuerURL string `json:"issuerURL,omitempty"`

	// clientID is whom tokens must be for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ClientID string `json:"clientID,omitempty"`

	// usernameClaim is the claim that is the user's name; without it, what the stack says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UsernameClaim string `json:"usernameClaim,omitempty"`

	// groupsClaim is the claim that has the user's groups; without it, what the stack says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	GroupsClaim string `json:"groupsClaim,omitempty"`

	// usernamePrefix is what names of users begin with; without it, what the stack says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UsernamePrefix string `json:"usernamePrefix,omitempty"`

	// groupsPrefix is what names of groups begin with; without it, what the stack says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
}

// WorkloadCluster is a Kubernetes cluster that a customer asks for.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadclusters,scope=Namespaced,categories={kaas,cluster-api},shortName=wc
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Kubernetes",type=string,JSONPath=`.status.versions.kubernetes`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.versions.release`
// +kubebuilder:printcolumn:name="Control plane",type=string,priority=1,JSONPath=`.status.controlPlane.ready`
// +kubebuilder:printcolumn:name="Workers",type=string,priority=1,JSONPath=`.status.workers.ready`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name of a cluster has at most 40 characters"
type WorkloadCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard. The name is that of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec WorkloadClusterSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status WorkloadClusterStatus `json:"status,omitempty,omitzero"`
}

// WorkloadClusterList is a list of WorkloadClusters.
// +kubebuilder:object:root=true
type WorkloadClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadCluster `json:"items"`
}
