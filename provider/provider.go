// Package provider is for writing providers: code that knows one infrastructure on which Polder makes clusters.
//
// A provider is a few functions: it says what it can do, what is wrong with a cluster that somebody asks for, and what
// variables the class of its stack gets. Package providermain makes a program of it, package providertest checks that
// it keeps the contract, and docs/provider-author walks through writing one. This package imports nothing of Polder but
// the API and names of machine types.
package provider

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Provider turns the standard description of a cluster into what one infrastructure needs.
//
// Calls may come at the same time, and again and again with the same input: they must be idempotent, end when
// their context does, and neither log nor return secrets. What is given must not be changed. A call that
// panics or does not end is reported on the cluster it was for, and counts against this provider only.
type Provider interface {
	// Describe says who the provider is and what it can do. The answer is always the same.
	Describe() Description

	// Validate says what is wrong with a cluster, as far as that can be known at once. It is asked before a
	// cluster is stored, and again before it is acted on. Standard fields are checked by others; what is left
	// is what only the provider knows. One error alone of type Forbidden, on spec.provider, says that there is no room
	// for another cluster, whatever its spec.
	Validate(ctx context.Context, in Input) field.ErrorList

	// Topology is what the class of the release gets. It depends on the input alone. The answer is kept
	// with the cluster, and asked for again only when something it depends on has changed: another answer
	// replaces machines.
	//
	// It may depend on the name and the network of the cluster, which never change, on the release, on pools by
	// name, machine types and zones, on OIDC and on parameters. It may not depend on how many machines there
	// are, on labels and taints, on what else the spec has, on metadata or on the status: when those change, it is
	// not asked for. What is said about the control plane, or about one pool, may depend on what is asked for
	// there, on OIDC and on the provider's own parameters; not on other pools, nor on parameters of the stack.
	Topology(ctx context.Context, in Input) (Topology, error)
}

// Health is an ability: a provider that can say whether its infrastructure can be used now. It is asked twice
// a minute, and the answer is shown on its Provider object.
type Health interface {
	Health(ctx context.Context) error
}

// Controllers is an ability: a provider whose own controllers run in the same process. They are registered before
// anything starts.
type Controllers interface {
	AddToScheme(s *runtime.Scheme) error
	SetupWithManager(mgr ctrl.Manager) error
}

// Description says who a provider is and what it can do. It is shown as the status of a Provider object.
type Description struct {
	Name    string // as in spec.provider: lower case letters, digits and dashes
	Title   string // what people call it
	Version string // of the provider's program

	// StackProvider is the first part of the names of releases it can use; empty: Name is.
	StackProvider string

	Capabilities []string // short words for what it can do beyond the least
	MachineTypes []v1alpha1.MachineType
	AnyShape     bool     // it makes machines of any shape, so that every portable name works
	Zones        []string // that pools can name; none: zones cannot be named

	// Isolation says what keeps the clusters of one customer apart from those of others and from the plane, for people.
	Isolation string

	// Immovable says why its clusters cannot be moved to another plane, for people; empty: clusterctl moves them.
	Immovable string

	// Parameters are those of spec.parameters that the provider itself takes, by name, each with its JSON
	// schema. They are not given to the class.
	Parameters map[string]map[string]any
}

// StackProviderName is the first part of the names of releases the provider can use.
func (d Description) StackProviderName() string {
	if d.StackProvider != "" {
		return d.StackProvider
	}
	return d.Name
}

// Input is what a provider works with.
type Input struct {
	Cluster *v1alpha1.WorkloadCluster // with all defaults
	Release Release
}

// Release is the release that was chosen for a cluster.
type Release struct {
	Name       string // such as local-scs-1-36-v3
	Kubernetes string // exact, with a leading v
	Variables  []Variable
	Workers    []string // names of the classes of workers, in the order of the class
}

// Variable is one variable of the class.
type Variable struct {
	Name     string
	Required bool
	Schema   map[string]any // as OpenAPI has it
}

// Has says that the class has a variable.
func (r Release) Has(name string) bool {
	_, ok := r.Variable(name)
	return ok
}

// Variable returns the variable of this name.
func (r Release) Variable(name string) (Variable, bool) {
	for _, v := range r.Variables {
		if v.Name == name {
			return v, true
		}
	}
	return Variable{}, false
}

// Topology is what a provider adds to a cluster. Number, labels, taints and zones of machines, versions,
// networks and the customer's parameters are put in by the controller.
type Topology struct {
	Variables    Values              // for the whole cluster
	ControlPlane Machines            // of the control plane; its Class means nothing
	Pools        map[string]Machines // by the name of the pool
	Labels       map[string]string   // on the Cluster
	Annotations  map[string]string   // on the Cluster
}

// Values are those of variables, by name. They must be such that JSON can express them.
type Values map[string]any

// Machines says how machines of one sort are made.
type Machines struct {
	Class     string // of workers; empty: the only one the class has, or the first
	Variables Values // for these machines only
}

// JSON is a value as objects of Kubernetes have it.
type JSON = apiextensionsv1.JSON
