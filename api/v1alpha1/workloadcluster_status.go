package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is where a cluster is, in one word.
// +kubebuilder:validation:Enum=Pending;Creating;Ready;Updating;Degraded;Stalled;Paused;Deleting
type Phase string

// Phases of a WorkloadCluster.
const (
	PhasePending  Phase = "Pending"  // nothing was made yet: something it needs is missing
	PhaseCreating Phase = "Creating" // it is being made
	PhaseReady    Phase = "Ready"    // all is as it should be
	PhaseUpdating Phase = "Updating" // it works, and is on its way to what the spec says
	PhaseDegraded Phase = "Degraded" // it was ready, and something of it does not work
	PhaseStalled  Phase = "Stalled"  // nothing goes on until somebody acts
	PhasePaused   Phase = "Paused"
	PhaseDeleting Phase = "Deleting"
)

// Actor is who must act.
// +kubebuilder:validation:Enum=Customer;PlatformOperator;Nobody
type Actor string

// Actors.
const (
	Customer         Actor = "Customer"
	PlatformOperator Actor = "PlatformOperator"
	Nobody           Actor = "Nobody"
)

// WorkloadClusterStatus is what was observed.
type WorkloadClusterStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the cluster is, in one word.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// message is one sentence: what is happening, or why it waits.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// actor is who must act.
	// +optional
	Actor Actor `json:"actor,omitempty"`

	// nextStep is what the actor is to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NextStep string `json:"nextStep,omitempty"`

	// versions are what is wanted and what runs.
	// +optional
	Versions Versions `json:"versions,omitempty,omitzero"`

	// clusterUID is the UID of the Cluster that was made. If that Cluster is gone, the cluster is lost: no other is made
	// in its place until somebody asks for it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClusterUID string `json:"clusterUID,omitempty"`

	// endpoint is the URL of the cluster's API.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`

	// controlPlane counts machines of the control plane.
	// +optional
	ControlPlane Counts `json:"controlPlane,omitempty,omitzero"`

	// workers counts machines of all pools.
	// +optional
	Workers Counts `json:"workers,omitempty,omitzero"`

	// pools count machines of each pool.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Pools []PoolStatus `json:"pools,omitempty"`

	// addons are the stages of the release's add-ons, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addons []AddonStatus `json:"addons,omitempty"`

	// updates are what the spec could be changed to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Updates []Update `json:"updates,omitempty"`

	// firstReadyTime is when the cluster was ready for the first time: until then it is being made.
	// +optional
	FirstReadyTime *metav1.Time `json:"firstReadyTime,omitempty"`

	// lastProgressTime is when something of the cluster was seen to move: a number, a version, a condition or its
	// message.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// undo says, while an update is under way, what of it can still be undone, and how.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Undo string `json:"undo,omitempty"`

	// conditions of the object: Ready, and what it is made of; Reconciling and Stalled as kstatus has them.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Versions are what is wanted and what runs.
type Versions struct {
	// kubernetes is what all machines of the control plane run at least.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Kubernetes string `json:"kubernetes,omitempty"`

	// wantedKubernetes is that of the wanted release.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	WantedKubernetes string `json:"wantedKubernetes,omitempty"`

	// workers is what all workers run at least.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Workers string `json:"workers,omitempty"`

	// release is the one the cluster was made of, or last updated to.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Release string `json:"release,omitempty"`

	// wantedRelease is the one the spec asks for.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	WantedRelease string `json:"wantedRelease,omitempty"`
}

// Counts are of machines.
type Counts struct {
	// desired is how many there should be.
	// +optional
	Desired *int32 `json:"desired,omitempty"`

	// ready is how many are.
	// +optional
	Ready *int32 `json:"ready,omitempty"`

	// updated is how many are as the spec says.
	// +optional
	Updated *int32 `json:"updated,omitempty"`
}

// PoolStatus is that of one pool.
type PoolStatus struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name,omitempty"`

	Counts `json:",inline"`
}

// AddonStatus is that of one stage of add-ons.
type AddonStatus struct {
	// name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// done says that the stage was gone through.
	// +optional
	Done bool `json:"done,omitempty"`

	// message says what it waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Update is what the spec could be changed to.
type Update struct {
	// kubernetesVersion is the minor.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=9
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// version of the release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// kubernetes is exact.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Kubernetes string `json:"kubernetes,omitempty"`
}
