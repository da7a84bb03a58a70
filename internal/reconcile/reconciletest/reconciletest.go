// Package reconciletest is the harness that every reconciler of Polder has to pass. It runs a subject, which
// is one or more controllers as their program sets them up, on a manager of its own against a real API
// server, and then makes everything go wrong that goes wrong in practice:
//
//	crash     the process crashes before or after any of its writes, or after each of them
//	missed    every k-th event of every watch is lost, and made up for by a resync only
//	stale     events are late, of all kinds or of one, come twice, or the watch expires; a delete without a UID
//	storm     somebody writes labels and annotations to the same objects, or breaks and repairs an input, twenty
//	          times a second
//	quiet     nothing happens: nothing is written, and nobody asks to be run again soon
//	stripped  what the subject has set on objects is removed by hand; objects are edited and deleted
//	bad       an input is wrong, and is then repaired
//	deleted   everything is deleted after any of the subject's writes, or while something blocks it
//
// One expectation serves all of them: the objects end as they do when nothing goes wrong, none is left over,
// and nothing is left once they are deleted. A subject says how it is set up, what it is given and which
// kinds it writes; the rest has defaults:
//
//	var shared = testenv.NewSharedWithout("operator") // the plane must not run the controller as well
//
//	func TestClusterStack(t *testing.T) {
//		api := reconciletest.API{Config: shared.Get(t).RESTConfig(t), Scheme: testenv.Scheme(t)}
//		reconciletest.Run(t, api, reconciletest.Subject{
//			Setup: func(ctx context.Context, mgr ctrl.Manager) error {
//				return (&clusterstack.Reconciler{Client: mgr.GetClient()}).SetupWithManager(mgr, controller.Options{})
//			},
//			Kinds: []client.Object{&csv1.ClusterStack{}, &csv1.ClusterStackRelease{}},
//			CreateInputs: func(ctx context.Context, c client.Client, namespace string) error {
//				return c.Create(ctx, clusterStack(namespace))
//			},
//			BadInputs: []reconciletest.Fault{{
//				Name:          "no such registry",
//				Break:         setRegistry("nowhere.invalid"),
//				CheckReported: reconciletest.ExpectReason(&csv1.ClusterStack{}, "demo", "Ready", "SourceUnreachable"),
//				Repair:        setRegistry(registry),
//			}},
//		})
//	}
//
// A sample of all cases runs by default; -reconcile.full runs all of them, and -reconcile.seed repeats a
// sample. Each case is a subtest, so -reconcile.full with -run repeats any one of them.
//
// Faults are injected where requests leave the process: in the transport of the manager's configuration. So
// they reach every client that is made from it, cached or not; one for something else than the API
// server takes part if it wraps its transport with mgr.GetConfig().WrapTransport.
package reconciletest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// API is the API server to test against, with all rights, and the scheme with the kinds that are needed.
type API struct {
	Config *rest.Config
	Scheme *runtime.Scheme
}

// Action changes or checks something in a namespace. Its client reads from the API server itself and has all
// rights. A check is repeated until it returns nil, or time is up.
type Action func(ctx context.Context, c client.Client, namespace string) error

// Subject is one or more controllers under test. Setup, Kinds and CreateInputs are needed.
type Subject struct {
	// Setup registers the controllers with a manager, as their program does. It is called anew for each process:
	// whatever a subject keeps in memory must be made here.
	Setup func(ctx context.Context, mgr ctrl.Manager) error
	// Kinds are the kinds that the subject writes, one object of each. Its own come first: the objects of the
	// first kind are the ones that become Ready and are deleted.
	Kinds []client.Object
	// CreateInputs creates the inputs in a new namespace. Their names must not depend on it.
	CreateInputs Action

	// CheckSettled returns nil once the objects are as wanted. Default: all objects of the first kind are Ready.
	CheckSettled Action
	// Delete begins to delete; it may be called again. Default: it deletes all objects of the first kind.
	Delete Action
	// CheckDeleted returns nil once nothing is left outside of the API server after Delete. That no object of
	// Kinds is left, with a finalizer or without, is checked anyway.
	CheckDeleted Action
	// AfterRemoval is what a person does after somebody removed an object that the subject has made, for subjects that
	// do not replace in silence what cannot be replaced. Default: nothing, the subject makes it again.
	AfterRemoval Action
	// BadInputs are inputs that can be wrong: the objects report it soon, and recover when it is repaired.
	BadInputs []Fault
	// DeleteBlockers are what can block Delete: the objects name it, and are deleted once it is repaired.
	DeleteBlockers []Fault

	// Normalize removes what differs from run to run. Times, UIDs, versions and the namespace's name are taken
	// care of.
	Normalize func(*unstructured.Unstructured)
	// User is whom the subject acts as; with the rights it will have, this tests that they suffice. Default: the
	// administrator.
	User string
	// Namespaces are further namespaces that the subject reads. Default: it reads its own namespace only.
	Namespaces []string
	// Cache says what of kinds without a namespace is kept in memory: what belongs to the namespace of a case, so that
	// cases beside each other do not see each other's. Default: all of them.
	Cache func(namespace string) map[client.Object]cache.ByObject
	// MinRequeueAfter is the shortest requeue that a settled object may ask for. Default: ten minutes.
	MinRequeueAfter time.Duration

	// MaxEvents is how many reconciles of a settled object, caused by what others do, are acceptable. Default: 5.
	// A controller that runs in circles has hundreds.
	MaxEvents int
	// Timeout bounds each wait for the subject. Default: half a minute.
	Timeout time.Duration
}

// Fault is something that goes wrong and is repaired.
type Fault struct {
	Name          string
	Break         Action
	CheckReported Action // nil once the objects say what is wrong; see ExpectReason
	Repair        Action
	Timing        Timing        // when it can happen; of BadInputs only
	ReportTimeout time.Duration // for CheckReported. Default: ten seconds more than twice the time of settling
}

// Timing says when a Fault can happen.
type Timing int

// A bad input can be there from the start, or come later when all is settled.
const (
	AnyTime Timing = iota
	FromStart
	AfterSettled
)

func (s Subject) withDefaults() Subject {
	if s.CheckSettled == nil {
		s.CheckSettled = expectReady(s.Kinds[0])
	}
	if s.Delete == nil {
		s.Delete = deleteAll(s.Kinds[0])
	}
	if s.CheckDeleted == nil {
		s.CheckDeleted = func(context.Context, client.Client, string) error { return nil }
	}
	if s.Normalize == nil {
		s.Normalize = func(*unstructured.Unstructured) {}
	}
	if s.MaxEvents == 0 {
		s.MaxEvents = 5
	}
	if s.MinRequeueAfter == 0 {
		s.MinRequeueAfter = 10 * time.Minute
	}
	if s.Timeout == 0 {
		s.Timeout = 30 * time.Second
	}
	return s
}
