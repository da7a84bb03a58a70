package v1alpha1

// ReadyCondition of both kinds summarises the others. It is computed, never set by itself.
const ReadyCondition = "Ready"

// Conditions of a LocalCluster, and their reasons.
const (
	// HostRunningCondition says that the cluster's host, the process that keeps its endpoint and
	// machines, is up and serves the endpoint.
	HostRunningCondition = "HostRunning"

	HostRunningReason    = "Running"
	HostStartingReason   = "Starting"
	HostFailedReason     = "Failed"
	NoFreeAddressReason  = "NoFreeAddress"
	NotSupportedReason   = "NotSupported" // this operating system cannot run local clusters
	HostDeletingReason   = "Deleting"
	EndpointChangeReason = "EndpointCannotChange"
)

// Conditions of a LocalMachine, and their reasons.
const (
	// BootedCondition says that the machine has done what its bootstrap data asked for.
	BootedCondition = "Booted"

	BootedReason                  = "Booted"
	BootingReason                 = "Booting"
	BootFailedReason              = "BootFailed"
	WaitingForInfrastructure      = "WaitingForClusterInfrastructure"
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	WaitingForHostReason          = "WaitingForHost"
	HostRenewedReason             = "HostRenewed" // of an event
	VersionNotSupportedReason     = "VersionNotSupported"
	MachineLostReason             = "MachineLost" // it was a node, and its files are gone
	DeletingReason                = "Deleting"

	// ProcessesRunningCondition says that what should run on the machine runs and is healthy.
	ProcessesRunningCondition = "ProcessesRunning"

	ProcessesRunningReason = "Running"
	ProcessesWaitingReason = "Starting"
	ProcessFailingReason   = "ProcessFailing"
	PoweredOffReason       = "PoweredOff"
	PartitionedReason      = "Partitioned" // cut off from the network, by polder machine fail
	SimulatedReason        = "Simulated"   // a worker: nothing runs but the simulation of its node

	// ConfigurationHonoredCondition is false when the bootstrap data ask for things a machine
	// that is only processes cannot do; the message lists them. The machine runs without them.
	ConfigurationHonoredCondition = "ConfigurationHonored"

	ConfigurationHonoredReason    = "Honored"
	ConfigurationNotHonoredReason = "NotHonored"
)

// ClusterFinalizer and MachineFinalizer keep the objects until their processes and files are gone.
const (
	ClusterFinalizer = "localcluster.infrastructure.cluster.x-k8s.io"
	MachineFinalizer = "localmachine.infrastructure.cluster.x-k8s.io"
)

// SimulatedLabel is on every node of a local cluster: pods on it do not really run.
const SimulatedLabel = "polder.dev/simulated"
