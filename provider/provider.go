// Package provider is for writing providers: code that knows one infrastructure on which Polder makes clusters.
//
// A provider is a few functions: it says what it can do, what is wrong with a cluster that somebody asks for, and what
// the class of its stack must be told. Main makes a program of it. Package providertest says whether it is sound, and
// docs/provider-author walks through writing one.
package provider

import "github.com/polder-kaas/polder/provider/contract"

// What a provider is and works with; see package contract.
type (
	// Provider is what is to be written.
	Provider = contract.Provider
	// Description says who a provider is and what it can do.
	Description = contract.Description
	// Input is what a provider works with.
	Input = contract.Input
	// Release is the release that was chosen for a cluster.
	Release = contract.Release
	// Topology is what a provider adds to a cluster.
	Topology = contract.Topology
	// Machines is how machines of one sort are made.
	Machines = contract.Machines
	// Values are those of variables.
	Values = contract.Values
)

// Abilities that a provider can have beside.
type (
	// Health says whether the infrastructure can be used now.
	Health = contract.Health
	// Controllers are a provider's own.
	Controllers = contract.Controllers
)
