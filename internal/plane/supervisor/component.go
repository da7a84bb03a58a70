// Package supervisor runs the parts of the management plane as one: started in order,
// stopped in reverse, and ended together with the reason as soon as one of them fails.
package supervisor

import (
	"context"
	"time"
)

// Component is one part of the plane.
//
// Run serves until ctx ends and returns nil only after that; returning earlier, with or
// without an error, is a failure of the component and ends the plane. Ready closes once the
// component serves; it must close exactly once and never before Run was called.
type Component interface {
	Name() string
	Run(ctx context.Context) error
	Ready() <-chan struct{}
}

// HealthChecker is implemented by components that can tell, after they became ready, whether they still serve.
// Healthy must return soon after ctx ends.
type HealthChecker interface {
	Healthy(ctx context.Context) error
}

// State is where a component is in its life.
type State string

// The states of a component, in the order they are passed through.
const (
	Waiting  State = "waiting"
	Starting State = "starting"
	Ready    State = "ready"
	Stopping State = "stopping"
	Stopped  State = "stopped"
	Failed   State = "failed"
)

// Status is a component's state, since when, and what there is to say about it.
type Status struct {
	Name    string    `json:"name"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"`
	Message string    `json:"message,omitempty"`
}
