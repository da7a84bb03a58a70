package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Channel of releases.
// +kubebuilder:validation:Enum=stable;custom
type Channel string

// Channels: stable versions, and all others.
const (
	ChannelStable Channel = "stable"
	ChannelCustom Channel = "custom"
)

// ClusterStackSpec says which releases of a stack are wanted.
// +kubebuilder:validation:XValidation:rule="self.provider == oldSelf.provider",message="provider cannot be changed; make another ClusterStack"
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name cannot be changed; make another ClusterStack"
// +kubebuilder:validation:XValidation:rule="self.kubernetesVersion == oldSelf.kubernetesVersion",message="kubernetesVersion cannot be changed; make another ClusterStack"
// +kubebuilder:validation:XValidation:rule="self.channel == oldSelf.channel",message="channel cannot be changed; make another ClusterStack"
type ClusterStackSpec struct {
	// provider is the first part of the names of releases.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Provider string `json:"provider,omitempty"`

	// name is the second part of the names of releases.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-[a-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// kubernetesVersion is the minor of Kubernetes, for example 1.36.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]\\\\.[0-9]+$')",message="write the minor of Kubernetes as two numbers, for example 1.36"
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// channel is stable for versions such as v3, and custom for all others, such as v0-sha.abc1234.
	// +optional
	// +kubebuilder:default=stable
	Channel Channel `json:"channel,omitempty"`

	// versions are releases that are wanted in any case, with a dot before the last part, such as v3 or
	// v0-sha.abc1234.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^v(0|[1-9][0-9]*)(-[0-9a-z]+[.-][0-9a-z]+)?$')",message="write a version as releases have it, for example v3 or v0-sha.abc1234"
	Versions []string `json:"versions,omitempty"`

	// autoSubscribe keeps the newest release of the channel.
	// +optional
	// +kubebuilder:default=true
	AutoSubscribe *bool `json:"autoSubscribe,omitempty"`

	// noProvider says that there is no object of a provider for each release. It is accepted, and means
	// nothing here: nobody needs one.
	// +optional
	NoProvider *bool `json:"noProvider,omitempty"`

	// providerRef refers to a template of a provider's objects. It is accepted and not acted on, which a
	// condition says.
	// +optional
	ProviderRef *corev1.ObjectReference `json:"providerRef,omitempty"`

	// source is where releases are. Without it, the plane's default is used.
	// +optional
	Source *Source `json:"source,omitempty"`

	// interval is how often the source is looked at; the default is five minutes, the least ten seconds.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="an interval is at least 10s"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// allowedNamespaces are those whose clusters may use the classes of this stack. Without it, only
	// clusters of its own namespace may.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`
}

// Source is a place with releases: exactly one of oci and directory.
// +kubebuilder:validation:XValidation:rule="has(self.oci) != has(self.directory)",message="a source has either oci or directory"
// +kubebuilder:validation:XValidation:rule="!has(self.directory) || !has(self.secretRef)",message="a directory takes no credentials; remove secretRef"
type Source struct {
	// oci is a repository, for example oci://registry.example.org/kaas/cluster-stacks.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('oci://') && self.size() > 8",message="write oci://host/repository"
	OCI string `json:"oci,omitempty"`

	// directory is the name of one that the plane's operator has set up for releases.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Directory string `json:"directory,omitempty"`

	// secretRef names a Secret in the same namespace with credentials: username and password, token, or
	// .dockerconfigjson. Its key ca.crt, if there is one, has who may vouch for the registry.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ReleaseSummary is one release that is wanted, or still used.
type ReleaseSummary struct {
	// name is the version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// ready says that clusters can be made of it.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// phase is how far it is.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Phase *string `json:"phase,omitempty"`

	// message says what is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message *string `json:"message,omitempty"`
}

// Phases of a release, as the operator that came before names them.
const (
	PhaseNone        = ""
	PhaseDownloading = "downloading release assets"
	PhaseApplying    = "applying objects"
	PhaseDone        = "done"
)

// ClusterStackStatus is what was observed.
type ClusterStackStatus struct {
	// latestRelease is the newest that is ready, with its version of Kubernetes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	LatestRelease *string `json:"latestRelease,omitempty"`

	// summary has one entry for each release.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Summary []ReleaseSummary `json:"summary,omitempty"`

	// usableVersions are the versions that are ready, newest last, joined by commas.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	UsableVersions *string `json:"usableVersions,omitempty"`

	// lastHandledReconcileAt is the value of the annotation that last asked for a look at the source.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledReconcileAt *string `json:"lastHandledReconcileAt,omitempty"`

	// actor is who must act.
	// +optional
	Actor Actor `json:"actor,omitempty"`

	// nextStep is what the actor is to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NextStep string `json:"nextStep,omitempty"`

	// conditions of the object: Ready, AssetsClientAPIAvailable, ClusterStackReleasesSynced,
	// ClusterStackReleaseAvailable and, if there is a providerRef, ProviderRefIgnored.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterStack keeps releases of a stack ready for clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterstacks,scope=Namespaced,categories=cluster-api,shortName=csk
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="ClusterStack",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="K8s",type=string,JSONPath=`.spec.kubernetesVersion`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.spec.channel`
// +kubebuilder:printcolumn:name="Autosubscribe",type=string,JSONPath=`.spec.autoSubscribe`
// +kubebuilder:printcolumn:name="Usable",type=string,JSONPath=`.status.usableVersions`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latestRelease`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Next step",type=string,priority=1,JSONPath=`.status.nextStep`
type ClusterStack struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec ClusterStackSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status ClusterStackStatus `json:"status,omitempty,omitzero"`
}

// ClusterStackList is a list of ClusterStacks.
// +kubebuilder:object:root=true
type ClusterStackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStack `json:"items"`
}
