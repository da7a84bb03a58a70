package v1alpha1

// Conditions of the kinds here. Those that the operator that came before has too bear its names.
const (
	// ConditionReady is a summary: true exactly when the object does what it is for.
	ConditionReady = "Ready"
	// ConditionProviderRefIgnored is true if there is a providerRef, which nobody acts on.
	ConditionProviderRefIgnored = "ProviderRefIgnored"
	// ConditionOldReferences is true if the class refers to its templates in versions that are not the newest of their
	// kinds. Cluster API reads them all the same.
	ConditionOldReferences = "OldReferences"

	// ConditionSourceAvailable of a ClusterStack: its source could be listed when it was last tried.
	ConditionSourceAvailable = "AssetsClientAPIAvailable"
	// ConditionReleasesSynced of a ClusterStack: all releases that are wanted are there and ready.
	ConditionReleasesSynced = "ClusterStackReleasesSynced"
	// ConditionReleaseAvailable of a ClusterStack: clusters can be made of at least one release.
	ConditionReleaseAvailable = "ClusterStackReleaseAvailable"

	// ConditionDownloaded of a ClusterStackRelease: its content is here, and is what its digest says.
	ConditionDownloaded = "ClusterStackReleaseDownloaded"
	// ConditionApplied of a ClusterStackRelease and of a ClusterAddon: all objects are applied.
	ConditionApplied = "HelmChartApplied"
	// ConditionClassReady of a ClusterStackRelease: Cluster API has taken the class.
	ConditionClassReady = "ClassReady"

	// ConditionClusterReady of a ClusterAddon: the cluster can take add-ons.
	ConditionClusterReady = "ClusterReady"
	// ConditionHealthy of a ClusterAddon: all objects of its add-ons are in order.
	ConditionHealthy = "Healthy"
)

// Reasons of conditions that are true.
const (
	ReasonReady     = "Ready"
	ReasonAvailable = "Available"
)

// Reasons of a ClusterStack.
const (
	ReasonSourceMissing     = "SourceMissing"     // there is none, and no default
	ReasonSourceInvalid     = "SourceInvalid"     // it, or its Secret, cannot be used as it is
	ReasonSourceUnreachable = "SourceUnreachable" // it does not answer, or not so that one could use it
	ReasonSourceBusy        = "SourceBusy"        // it waits for its turn; others of the namespace are read
	ReasonNoRelease         = "NoRelease"         // the source has none that fits
	ReasonNotOurs           = "BelongsToAnother"  // another ClusterStack of the namespace has the release
	ReasonReleasesNotReady  = "ReleasesNotReady"
	ReasonDeleting          = "Deleting"
	ReasonInUse             = "InUse"
	ReasonNotActedOn        = "NotActedOn"
	ReasonOldVersion        = "OldVersion"
)

// Reasons of a ClusterStackRelease.
const (
	ReasonNameInvalid   = "NameInvalid"   // it is not the name of a release
	ReasonNotFound      = "NotFound"      // the source does not have it
	ReasonDigestChanged = "DigestChanged" // the source has another content under this name
	ReasonInvalid       = "Invalid"       // its content is not sound
	ReasonRefused       = "Refused"       // an object of it is not allowed here
	ReasonApplyFailed   = "ApplyFailed"
	ReasonClassNotSeen  = "ClassNotSeen"  // Cluster API has not looked at the class yet
	ReasonClassNotReady = "ClassNotReady" // Cluster API does not take it
)

// Reasons of a ClusterAddon.
const (
	ReasonNotAllowed       = "NotAllowed"      // the stack does not serve the cluster's namespace
	ReasonNotFromRelease   = "NotFromRelease"  // the cluster's class is of no release any more
	ReasonReleaseNotReady  = "ReleaseNotReady" // the release is not ready
	ReasonNotInitialized   = "ControlPlaneNotReady"
	ReasonUnreachable      = "ClusterUnreachable"
	ReasonStagesRunning    = "StagesRunning"
	ReasonStageWaiting     = "StageWaiting"     // for its condition, which says what is missing
	ReasonStageTimedOut    = "StageTimedOut"    // it has waited for longer than it should; it still waits
	ReasonConditionInvalid = "ConditionInvalid" // the CEL of a stage is wrong
	ReasonNotHealthy       = "NotHealthy"
)

// Actor is who must act.
// +kubebuilder:validation:Enum=Customer;PlatformOperator;StackAuthor;Nobody
type Actor string

// Actors.
const (
	Customer         Actor = "Customer"
	PlatformOperator Actor = "PlatformOperator"
	StackAuthor      Actor = "StackAuthor"
	Nobody           Actor = "Nobody"
)

// How many objects a status can list, as its schema says.
const (
	MaxReleaseResources = 512
	MaxAddonResources   = 4096
)

// Annotations, labels and finalizers.
const (
	// RequestedAtAnnotation on a ClusterStack makes its source be looked at now. Any new value does.
	RequestedAtAnnotation = "clusterstack.x-k8s.io/reconcile-requested-at"

	// OwnedLabel is on every object of a release or an add-on, with the value OwnedValue.
	OwnedLabel = "clusterstack.x-k8s.io/instance"
	// OwnedValue is the value of OwnedLabel.
	OwnedValue = "owned"

	// ReleaseFinalizer of a ClusterStackRelease holds until its class and templates are gone.
	ReleaseFinalizer = "clusterstackrelease.clusterstack.x-k8s.io"
	// AddonFinalizer is one that the operator that came before left on ClusterAddons; it is removed.
	AddonFinalizer = "clusteraddon.clusterstack.x-k8s.io"

	// AddonPrefix and the name of its cluster make the name of a ClusterAddon.
	AddonPrefix = "cluster-addon-"
)
