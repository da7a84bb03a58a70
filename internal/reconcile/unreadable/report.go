package unreadable

import (
	"context"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/polder-kaas/polder/stack/text"
)

const (
	// Reason is that of the Event on an object that cannot be read.
	Reason = "UnreadableObject"

	reporter = "polder-unreadable-objects"
	// maxProblem and maxName leave room for what is added: notes may have 1024 characters, names 253.
	maxProblem = 500
	maxName    = 200
)

// AddReporter lets a manager write an Event for each unreadable object; c may create Events everywhere.
func (f *Filter) AddReporter(mgr manager.Manager, c *rest.Config) error {
	events, err := eventsclient.NewForConfig(c)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		f.writeEvents(ctx, events, clock.RealClock{})
		return nil
	}))
}

func (f *Filter) addPending(o Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, o)
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (f *Filter) takePending() []Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.pending
	f.pending = nil
	return all
}

// writeEvents reports until ctx ends. Several managers see the same object; the one whose Event is the first logs it.
func (f *Filter) writeEvents(ctx context.Context, events eventsclient.EventsGetter, now clock.PassiveClock) {
	log := ctrl.LoggerFrom(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		for _, o := range f.takePending() {
			e := newEvent(o, metav1.NewMicroTime(now.Now()))
			_, err := events.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
				continue
			}
			log.Info("An object cannot be read, and is left as it is", "kind", o.Kind.Kind, "namespace", o.Namespace,
				"name", o.Name, "resourceVersion", o.ResourceVersion, "problem", o.Problem)
			if err != nil {
				log.Error(err, "Writing an Event about an object that cannot be read")
			}
		}
	}
}

// newEvent returns the Event of one version of an object. Its name depends on that alone, so that there is just one.
func newEvent(o Object, at metav1.MicroTime) *eventsv1.Event {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %s", o.Kind, o.UID, o.ResourceVersion)
	e := &eventsv1.Event{
		EventTime: at, ReportingController: reporter, ReportingInstance: reporter, Action: "Decode", Reason: Reason,
		Type: corev1.EventTypeWarning, Note: newNote(o),
		Regarding: corev1.ObjectReference{
			APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name,
			UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
	}
	e.Namespace = o.Namespace
	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceDefault // as all Events about objects without a namespace
	}
	e.Name = fmt.Sprintf("%s.%x", o.Name[:min(len(o.Name), maxName)], h.Sum64())
	return e
}

// newNote says what is wrong and what to do.
func newNote(o Object) string {
	return fmt.Sprintf("%s; no controller can read this %s, so nothing is done for it and nothing of it is removed. "+
		"Repair it with kubectl edit or kubectl patch; it goes on by itself then. "+
		"If that is refused, delete it and create it again; as long as it has finalizers it stays until it is repaired.",
		text.Truncate(o.Problem, maxProblem), o.Kind.Kind)
}
