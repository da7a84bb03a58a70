package v1alpha1

// Conditions of a WorkloadCluster. Ready is true exactly when all others are and the spec is what runs.
const (
	ConditionReady = "Ready"
	// ConditionReconciling is there, and true, while something is under way; see kstatus.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is there, and true, while nothing goes on until somebody acts; see kstatus.
	ConditionStalled = "Stalled"

	// ConditionResolved of a WorkloadCluster: there is a release for it.
	ConditionResolved = "ReleaseResolved"
	// ConditionAccepted of a WorkloadCluster: the provider takes what the spec says.
	ConditionAccepted = "ProviderAccepted"
	// ConditionApplied of a WorkloadCluster: Cluster API was told what the spec says.
	ConditionApplied = "TopologyApplied"
	// ConditionControlPlane of a WorkloadCluster: all machines of the control plane are there, ready and up to date.
	ConditionControlPlane = "ControlPlaneReady"
	// ConditionWorkers of a WorkloadCluster: all machines of all pools are there, ready and up to date.
	ConditionWorkers = "WorkersReady"
	// ConditionReachable of a WorkloadCluster: its API answers.
	ConditionReachable = "Reachable"
	// ConditionAddons of a WorkloadCluster: all add-ons of its release are there and healthy.
	ConditionAddons = "AddonsReady"
)

// Reasons of conditions.
const (
	ReasonReady = "Ready"

	ReasonStackMissing      = "StackMissing"      // no ClusterStack serves it
	ReasonReleaseMissing    = "ReleaseMissing"    // the stack does not have the release that is pinned, or none at all
	ReasonReleaseNotReady   = "ReleaseNotReady"   // the release is there, and no cluster can be made of it yet
	ReasonVersionLower      = "VersionLower"      // Kubernetes cannot be lowered
	ReasonVersionSkips      = "VersionSkips"      // Kubernetes can be raised by one minor at a time
	ReasonProviderMissing   = "ProviderMissing"   // nobody of this name is there
	ReasonProviderRefused   = "ProviderRefused"   // the provider does not take the spec
	ReasonProviderFailed    = "ProviderFailed"    // the provider could not say what it needs
	ReasonProviderPanicked  = "ProviderPanicked"  // the provider's code broke down
	ReasonProviderTimedOut  = "ProviderTimedOut"  // the provider's code did not answer
	ReasonNotOurs           = "BelongsToAnother"  // there is a Cluster of this name that is not ours
	ReasonClusterLost       = "ClusterLost"       // the Cluster that was made for it is gone, and nobody deleted it here
	ReasonClusterMoving     = "ClusterMoving"     // its Cluster is on the way here from another plane
	ReasonClusterRefused    = "ClusterRefused"    // Cluster API does not take it
	ReasonApplyFailed       = "ApplyFailed"       // it could not be written
	ReasonAddonsFirst       = "AddonsFirst"       // the new release's add-ons are applied before its class
	ReasonNotThereYet       = "NotThereYet"       // Cluster API has not made it yet
	ReasonMachinesMissing   = "MachinesMissing"   // some are not ready
	ReasonMachinesComing    = "MachinesComing"    // there are to be more than there were, and all that were are ready
	ReasonMachinesOutOfDate = "MachinesOutOfDate" // some are not as the spec says
	ReasonQuotaExceeded     = "QuotaExceeded"     // the namespace may have no more of what is missing
	ReasonEtcdFull          = "EtcdFull"          // the cluster's etcd has no space left, and takes no changes
	ReasonUnreachable       = "Unreachable"       // the cluster's API does not answer
	ReasonNotVerified       = "NotVerified"       // it seems ready, and could not be looked at closer
	ReasonPaused            = "Paused"
	ReasonDeleting          = "Deleting"
	ReasonProgressing       = "Progressing"
)

// Reasons of a KubeconfigRequest.
const (
	ReasonIssued          = "Issued"
	ReasonClusterMissing  = "ClusterMissing"
	ReasonClusterNotReady = "ClusterNotReady"
	ReasonRequestInvalid  = "RequestInvalid"
	ReasonExpired         = "Expired"
)

// Reasons of a Tenant.
const (
	ReasonNamespaceTaken    = "NamespaceTaken"    // the namespace is not marked as the tenant's
	ReasonNamespaceLost     = "NamespaceLost"     // the namespace that was made is gone, or going
	ReasonNamespaceReserved = "NamespaceReserved" // the plane itself needs a namespace of that name
	ReasonPlaneStarting     = "PlaneStarting"     // its own plane is not ready yet
	ReasonPlaneFailed       = "PlaneFailed"       // its own plane ended, or does not answer
	ReasonPlaneLost         = "PlaneLost"         // the data of its own plane are not here
)

// Annotations, labels, finalizers and names.
const (
	// WorkloadClusterFinalizer holds a WorkloadCluster until its cluster is gone.
	WorkloadClusterFinalizer = "polder.dev/workloadcluster"

	// PrepareAnnotation on a Cluster names a release, as namespace/name, whose add-ons are applied before the
	// Cluster is given its class.
	PrepareAnnotation = "polder.dev/prepare-release"

	// AppliedAnnotation on a Cluster is the digest of what its WorkloadCluster made of it.
	AppliedAnnotation = "polder.dev/applied"

	// AnswerAnnotation on a Cluster is what its provider said of it, and what that was asked.
	AnswerAnnotation = "polder.dev/provider-answer"

	// RecreateAnnotation on a WorkloadCluster is the UID of a Cluster that is lost and is to be replaced by a new one,
	// which is empty.
	RecreateAnnotation = "polder.dev/recreate"

	// MovingAnnotation on a WorkloadCluster is the UID of its Cluster while that is paused, as it is during a move to
	// another plane: there it says that a Cluster is to come, and none is to be made.
	MovingAnnotation = "polder.dev/moving"

	// UnreadableAnnotation, together with the resource version UnreadableVersion, is on an object in the cache of a
	// controller that lacks the fields that could not be decoded. In the API server no object has both.
	UnreadableAnnotation = "polder.dev/unreadable"
	// UnreadableVersion is one that no stored object has, so that an update meets a conflict.
	UnreadableVersion = "1"

	// WorkloadClusterLabel on a Cluster is the name of its WorkloadCluster.
	WorkloadClusterLabel = "polder.dev/workload-cluster"
	// ProviderLabel on a Cluster is the name of the provider.
	ProviderLabel = "polder.dev/provider"
	// PoolLabel on a MachineDeployment of a Cluster is the name of the pool.
	PoolLabel = "polder.dev/pool"

	// CustomerLabel on a namespace, with any value, says that it is a customer's: a ResourceQuota is made for it, and
	// nothing in it may refer to other namespaces.
	CustomerLabel = "polder.dev/customer"
	// QuotaLabel on a customer's namespace, with the value QuotaOwn, says that the platform operator sets its quota:
	// none is made.
	QuotaLabel = "polder.dev/quota"
	// QuotaOwn is the value of QuotaLabel.
	QuotaOwn = "own"
	// DefaultQuotaName is the name of the ResourceQuota that is made for a customer's namespace.
	DefaultQuotaName = "polder-default"

	// TenantLabel on a namespace is the name of the Tenant that it is for, and on what is made in it for that Tenant.
	TenantLabel = "polder.dev/tenant"
	// TenantUIDAnnotation on a namespace is the UID of the Tenant that it is for. Without it, the Tenant that the label
	// names takes the namespace with all that is in it; with another one, it does not: they are those of an earlier one.
	TenantUIDAnnotation = "polder.dev/tenant-uid"
	// PlaneLabel on a namespace, with the value Dedicated, says that what is in it is in a plane of its own. It is set
	// when the namespace is made, and never later.
	PlaneLabel = "polder.dev/plane"
	// PlaneUIDAnnotation on such a namespace tells that plane from all others. With it, an empty plane is never taken for
	// the one that was there.
	PlaneUIDAnnotation = "polder.dev/plane-uid"
	// PlaneFinalizer holds such a namespace until all that is in its plane is gone, and the plane with it.
	PlaneFinalizer = "polder.dev/plane"

	// IdempotencyAnnotation on a WorkloadCluster is a hash of the Idempotency-Key and of the request that made it.
	IdempotencyAnnotation = "polder.dev/idempotency-key"

	// RobotAccountPrefix is how names of robots' service accounts begin. Customers get tokens for no other account.
	RobotAccountPrefix = "robot-"
	// TenantQuotaName is the name of the ResourceQuota that a Tenant makes in its namespace.
	TenantQuotaName = "polder-tenant"

	// CatalogueNamespace has the stacks that all namespaces may use.
	CatalogueNamespace = "polder-catalogue"
	// ProvidersNamespace has the service accounts of providers that run in processes of their own, by their names.
	ProvidersNamespace = "polder-providers"
)
