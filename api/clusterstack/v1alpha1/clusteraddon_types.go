package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAddonSpec names the cluster. Other fields were state of the operator that came before: they
// are accepted and ignored.
type ClusterAddonSpec struct {
	// clusterRef is the cluster, in the same namespace.
	// +required
	ClusterRef *corev1.ObjectReference `json:"clusterRef,omitempty"`

	// clusterStack is ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterStack string `json:"clusterStack,omitempty"`

	// version is ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// hook is ignored.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Hook string `json:"hook,omitempty"`
}

// StagePhase is how far a stage is.
type StagePhase string

// Phases of a stage, as the operator that came before names them.
const (
	StagePending  StagePhase = "Pending"
	StageWaitPre  StagePhase = "waitingForPreCondition"
	StageApplying StagePhase = "applyingOrDeleting"
	StageWaitPost StagePhase = "waitingForPostCondition"
	StageDone     StagePhase = "done"
)

// StageStatus is one stage of the release the cluster is at, or is on its way to.
type StageStatus struct {
	// name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// action is apply or delete.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Action string `json:"action,omitempty"`

	// phase is how far it is.
	// +optional
	// +kubebuilder:validation:Enum=Pending;waitingForPreCondition;applyingOrDeleting;waitingForPostCondition;done
	Phase StagePhase `json:"phase,omitempty"`

	// message says what it waits for, or what is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the stage began to wait, or to act.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// install says that nothing of the stage's chart was in the cluster when the stage began to act: then its
	// Helm hooks are those for an installation, else those for an upgrade.
	// +optional
	Install *bool `json:"install,omitempty"`

	// endedHooks are runs of Helm hooks that have come to their end. They are not run again, also if what
	// was made for them is gone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	EndedHooks []string `json:"endedHooks,omitempty"`
}

// ClusterAddonStatus is what was observed.
type ClusterAddonStatus struct {
	// release is the ClusterStackRelease all of whose stages are done, as namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Release string `json:"release,omitempty"`

	// target is the ClusterStackRelease the stages are of, as namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Target string `json:"target,omitempty"`

	// targetDigest is that of the target's content.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	TargetDigest string `json:"targetDigest,omitempty"`

	// hook is the one the stages are of: AfterControlPlaneInitialized or BeforeClusterUpgrade.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Hook string `json:"hook,omitempty"`

	// stages are in the order they are run in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Stages []StageStatus `json:"stages,omitempty"`

	// resources are the objects in the cluster. They are listed before they are applied.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Resources []Resource `json:"resources,omitempty"`

	// clusterGeneration is that of the Cluster when all add-ons were last applied for it.
	// +optional
	ClusterGeneration int64 `json:"clusterGeneration,omitempty"`

	// ready says that all add-ons of the cluster's release are there and healthy.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// actor is who must act.
	// +optional
	Actor Actor `json:"actor,omitempty"`

	// nextStep is what the actor is to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NextStep string `json:"nextStep,omitempty"`

	// conditions of the object: Ready, ClusterReady, HelmChartApplied, Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterAddon keeps the add-ons of one cluster.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteraddons,scope=Namespaced,categories=cluster-api,shortName=caddon
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.release`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Next step",type=string,priority=1,JSONPath=`.status.nextStep`
type ClusterAddon struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard. The name is cluster-addon- and that of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec ClusterAddonSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status ClusterAddonStatus `json:"status,omitempty,omitzero"`
}

// ClusterAddonList is a list of ClusterAddons.
// +kubebuilder:object:root=true
type ClusterAddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterAddon `json:"items"`
}
