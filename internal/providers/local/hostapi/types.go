// Package hostapi is what a local cluster's host, polderd and the polder command say to each
// other. A host is the process that keeps one cluster's endpoint and machines; it answers on a
// socket in its directory, which nobody but the directory's owner can open.
package hostapi

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Cluster is what a host is made for. It is kept in the host's directory and never changes.
type Cluster struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"` // of the Cluster
	UID       string       `json:"uid"`  // of the LocalCluster
	Addresses netip.Prefix `json:"addresses"`
	Port      int32        `json:"port"` // of the endpoint
}

// Endpoint is where the cluster's API is served: the first address of the block.
func (c Cluster) Endpoint() netip.AddrPort {
	return netip.AddrPortFrom(c.Addresses.Masked().Addr().Next(),
		uint16(c.Port)) //nolint:gosec // ports are checked by Validate
}

// MachineSpec is what a host must know to run a machine. It is kept with the machine's files, so
// that after a restart of the host, or of the whole computer, the machine starts again.
type MachineSpec struct {
	Name         string              `json:"name"` // of the LocalMachine
	Node         string              `json:"node"` // of the Machine and its node
	UID          string              `json:"uid"`  // of the LocalMachine
	ControlPlane bool                `json:"controlPlane"`
	Version      string              `json:"version"` // of Kubernetes, as the Machine has it
	ProviderID   string              `json:"providerID"`
	Zone         string              `json:"zone,omitempty"`
	Capacity     corev1.ResourceList `json:"capacity,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Taints       []corev1.Taint      `json:"taints,omitempty"`
	UserData     []byte              `json:"userData"`
	// ClusterConfiguration is that of kubeadm, for a control plane that joins: what it is told by the workload cluster
	// itself cannot be trusted. Hosts before JoinProtocol read the cluster's ConfigMap instead.
	ClusterConfiguration []byte `json:"clusterConfiguration,omitempty"`
}

// JoinProtocol is the first protocol of hosts that take ClusterConfiguration, and check what machines are told.
const JoinProtocol = 1

// Status is the state of a host and its machines.
type Status struct {
	Revision int64   `json:"revision"` // grows with every change
	Cluster  Cluster `json:"cluster"`
	PID      int     `json:"pid"`
	// Kubernetes is the version that is built into the host's program: its polderd may be older than ours, and then
	// cannot run all that ours can. Hosts before v1.37 do not say.
	Kubernetes string    `json:"kubernetes,omitempty"`
	Protocol   int       `json:"protocol,omitempty"` // what the host understands; see JoinProtocol
	StartedAt  time.Time `json:"startedAt"`
	// Confinement is what the kernel does to keep the cluster's processes apart from everything else; nil for a host
	// that was started by an older polderd.
	Confinement *Confinement    `json:"confinement,omitempty"`
	Memory      uint64          `json:"memory"`  // anonymous bytes of the host itself
	Serving     []string        `json:"serving"` // machines whose API servers are behind the endpoint
	Problem     string          `json:"problem,omitempty"`
	Machines    []MachineStatus `json:"machines"`
}

// MachineStatus is the state of one machine.
type MachineStatus struct {
	Name         string          `json:"name"`
	Node         string          `json:"node"`
	UID          string          `json:"uid"`
	ControlPlane bool            `json:"controlPlane"`
	Version      string          `json:"version"`
	Address      string          `json:"address"`
	Dir          string          `json:"dir"`
	Off          bool            `json:"off,omitempty"`
	Partitioned  bool            `json:"partitioned,omitempty"` // cut off from the network, by FailPartition
	Boot         BootStatus      `json:"boot"`
	Processes    []ProcessStatus `json:"processes,omitempty"`
	// Configured says that it has its ClusterConfiguration.
	Configured bool   `json:"configured,omitempty"`
	Registered bool   `json:"registered"` // its node is in the cluster, and its mirror pods show its processes
	Problem    string `json:"problem,omitempty"`
}

// IsRunning says that everything that should run on the machine does, and that the cluster shows it.
func (m MachineStatus) IsRunning() bool {
	if m.Off || m.Partitioned || !m.Boot.Done || !m.Registered || m.ControlPlane && len(m.Processes) == 0 {
		return false
	}
	for _, p := range m.Processes {
		if !p.Ready {
			return false
		}
	}
	return true
}

// BootStatus is how far a machine is with what its bootstrap data ask for.
type BootStatus struct {
	Done       bool       `json:"done"`
	Steps      []BootStep `json:"steps,omitempty"`
	Step       string     `json:"step,omitempty"`    // at work now
	Problem    string     `json:"problem,omitempty"` // why the last attempt ended
	Attempts   int        `json:"attempts,omitempty"`
	NotHonored []string   `json:"notHonored,omitempty"` // what was asked for and cannot be done here
	Commands   []string   `json:"commands,omitempty"`   // what a real machine would have run
	Notes      []string   `json:"notes,omitempty"`      // what was changed so that kubeadm accepts it
}

// NodeRegistration is what the kubeadm configuration says about a machine's node.
type NodeRegistration struct {
	Taints []corev1.Taint    `json:"taints,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// BootStep is something the boot has done.
type BootStep struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took"`
}

// ProcessStatus is a static pod.
type ProcessStatus struct {
	Name       string    `json:"name"`
	PID        int       `json:"pid,omitempty"`
	Ready      bool      `json:"ready"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	Restarts   int       `json:"restarts"`
	Memory     uint64    `json:"memory,omitempty"` // anonymous bytes
	Log        string    `json:"log"`
	LastExit   string    `json:"lastExit,omitempty"`
	LastExitAt time.Time `json:"lastExitAt,omitzero"`
	Output     []string  `json:"output,omitempty"` // last lines of a process that ended
	Command    []string  `json:"command"`
	Rewrites   []Rewrite `json:"rewrites,omitempty"`
}

// Rewrite is an argument that differs from the static pod's, and why.
type Rewrite struct {
	From string `json:"from,omitempty"` // empty: added
	To   string `json:"to,omitempty"`   // empty: dropped
	Why  string `json:"why"`
}
