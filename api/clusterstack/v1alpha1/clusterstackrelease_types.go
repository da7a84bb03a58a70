package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterStackReleaseSpec has nothing to say: the name of the object is that of the release.
type ClusterStackReleaseSpec struct {
	// providerRef refers to an object of a provider. It is accepted and not acted on.
	// +optional
	ProviderRef *corev1.ObjectReference `json:"providerRef,omitempty"`
}

// ResourceStatus says whether an object is as the release has it.
type ResourceStatus string

// States of an object.
const (
	ResourceSynced    ResourceStatus = "synced"
	ResourceNotSynced ResourceStatus = "not-synced"
)

// Resource is one object that belongs to a release or to an add-on.
type Resource struct {
	// group of the kind; empty for Kubernetes' first one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace of the object; empty if it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is that of the object when it was last applied; only releases have it.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation is that of the object when it was last applied; only releases have it.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// status is synced, or not-synced.
	// +optional
	// +kubebuilder:validation:Enum=synced;not-synced
	Status ResourceStatus `json:"status,omitempty"`

	// error says why it is not synced.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Error string `json:"error,omitempty"`
}

// ReplacedMachines are the machines of a cluster that are replaced when a parameter changes.
type ReplacedMachines string

// Machines that are replaced.
const (
	ReplacesNone         ReplacedMachines = "None"
	ReplacesControlPlane ReplacedMachines = "ControlPlane"
	ReplacesWorkers      ReplacedMachines = "Workers"
	ReplacesAll          ReplacedMachines = "All"
	ReplacesUnknown      ReplacedMachines = "Unknown" // something outside the class decides
)

// MaxReleaseParameters is how many parameters and fields of them a release lists. The rest is left out.
const MaxReleaseParameters = 256

// MaxParameterText is how many bytes the texts of a parameter have. The rest is left out.
const MaxParameterText = 512

// Parameter is something that clusters can choose in spec.parameters, or a field of it.
type Parameter struct {
	// name of the parameter; of a field, with the path to it, such as mirrors[].host.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// type of its value: string, integer, number, boolean, object, or a list of these.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Type string `json:"type,omitempty"`

	// required says that there is no cluster, or no object around the field, without it.
	// +optional
	Required bool `json:"required,omitempty"`

	// default is the value it has if nobody sets it, as JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Default string `json:"default,omitempty"`

	// allowed says in words which values of its type are taken.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Allowed string `json:"allowed,omitempty"`

	// description says what it means.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// replaces says which machines are replaced when it changes.
	// +optional
	// +kubebuilder:validation:Enum=None;ControlPlane;Workers;All;Unknown
	Replaces ReplacedMachines `json:"replaces,omitempty"`
}

// ClusterStackReleaseStatus is what was observed.
type ClusterStackReleaseStatus struct {
	// resources are the objects of the class. They are listed before they are applied, so nothing is
	// ever applied that is not listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Resources []Resource `json:"resources,omitempty"`

	// kubernetesVersion is exact, with a leading v.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// parameters are what clusters of the release can choose, each followed by its fields.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Parameters []Parameter `json:"parameters,omitempty"`

	// digest is that of the content that is applied. Once it is known, no other content is taken.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`

	// ready says that clusters can be made of it.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// actor is who must act.
	// +optional
	Actor Actor `json:"actor,omitempty"`

	// nextStep is what the actor is to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NextStep string `json:"nextStep,omitempty"`

	// conditions of the object: Ready, ClusterStackReleaseDownloaded, HelmChartApplied, ClassReady and, if there is
	// a providerRef, ProviderRefIgnored, if the class has references in old versions, OldReferences.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterStackRelease is one release of a stack, with its class in the plane.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterstackreleases,scope=Namespaced,categories=cluster-api,shortName=cskr
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="K8s version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Next step",type=string,priority=1,JSONPath=`.status.nextStep`
type ClusterStackRelease struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard. The name is that of the release, with dashes.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec ClusterStackReleaseSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status ClusterStackReleaseStatus `json:"status,omitempty,omitzero"`
}

// ClusterStackReleaseList is a list of ClusterStackReleases.
// +kubebuilder:object:root=true
type ClusterStackReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStackRelease `json:"items"`
}
