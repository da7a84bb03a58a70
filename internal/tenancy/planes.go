package tenancy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Planes are the planes of tenants that have one of their own, each by the UID of its namespace in this one.
type Planes interface {
	// Ensure starts the plane of a namespace, unless it runs already. It does not wait.
	Ensure(namespace *corev1.Namespace)
	// State says how that plane is.
	State(uid types.UID) PlaneState
	// Client returns a client with all rights in that plane; the error says why there is none.
	Client(uid types.UID) (client.Client, error)
	// Accept lets requests into a plane, which is the one that it is taken for.
	Accept(uid types.UID)
	// Reject keeps requests from a plane, for a reason that is then its state. It goes on running.
	Reject(uid types.UID, reason string)
	// Remove stops that plane and deletes its data.
	Remove(ctx context.Context, uid types.UID) error
	// Notify has a function called with the name of a namespace after each change of its plane. It must not wait.
	Notify(f func(namespace string))
}

// NewEvents returns a channel with an event for the namespace of each plane that changes.
func NewEvents(p Planes) <-chan event.GenericEvent {
	changes := make(chan event.GenericEvent, 64) //nolint:mnd // whoever finds it full waits, in a goroutine of its own
	p.Notify(func(namespace string) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		go func() { changes <- event.GenericEvent{Object: ns} }()
	})
	return changes
}

// PlaneState is how a plane is.
type PlaneState struct {
	Phase   PlanePhase
	Message string // why it is not ready, for who runs the planes: it may name files
}

// ForMembers says to members of the tenant why a plane is not ready.
func (s PlaneState) ForMembers() string {
	switch s.Phase {
	case PlaneFailed:
		return "it has failed; it is started again, and polder status tells the platform operator why it ended"
	case PlaneLost:
		return "its data are not there; the platform operator must put them back, polder status says where"
	}
	return "it is starting"
}

// PlanePhase is how far a plane is.
type PlanePhase string

// The phases of a plane.
const (
	PlaneUnknown  PlanePhase = ""         // nobody has asked for it yet
	PlaneStarting PlanePhase = "Starting" // it is not ready yet
	PlaneReady    PlanePhase = "Ready"    // it serves
	PlaneFailed   PlanePhase = "Failed"   // it ended, and is started again, or it does not answer
	PlaneLost     PlanePhase = "Lost"     // its data are not here, or are those of another
)

// HasOwnPlane reports whether what is in a namespace is in a plane of its own.
func HasOwnPlane(ns *corev1.Namespace) bool {
	return ns.Labels[v1alpha1.PlaneLabel] == string(v1alpha1.DedicatedPlane)
}
