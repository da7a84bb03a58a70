package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
)

// fault is one thing a reconciler does wrong.
type fault string

const (
	none                     fault = ""
	hasNoFinalizer           fault = "has no finalizer"
	addsFinalizerLast        fault = "adds its finalizer last"
	addsFinalizerOnce        fault = "adds its finalizer once"
	recordsTooLate           fault = "records what it made after it made it"
	isReadyTooSoon           fault = "is ready before its children are there"
	isDrivenByEdges          fault = "waits for an event, not for a state"
	makesWhatItDoesNotSee    fault = "makes children that its cache does not show under other names"
	deletesByName            fault = "deletes whatever has the name"
	makesChildrenOnce        fault = "makes children only while it is not ready"
	doesNotWatch             fault = "does not watch its children"
	doesNotRestoreLabels     fault = "does not restore labels"
	doesNotRestoreContent    fault = "does not restore content"
	doesNotRestoreStatus     fault = "does not restore its status"
	writesEachTime           fault = "writes each time, though nothing has changed"
	neverStopsWriting        fault = "changes something each time"
	asksAgainSoon            fault = "asks to be run again soon"
	removesAnnotations       fault = "removes annotations of others"
	doesNotRecover           fault = "does not recover"
	doesNotSayWhatIsWrong    fault = "does not say what is wrong"
	doesNotSayWhatIsInTheWay fault = "does not say what is in the way"
)

func (r *toy) remembers(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory[what]
}

func (r *toy) remember(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		r.memory = map[string]bool{}
	}
	r.memory[what] = true
}

func (r *toy) wantsFinalizer(*infrav1.LocalCluster) bool {
	switch r.fault {
	case hasNoFinalizer, addsFinalizerLast:
		return false
	case addsFinalizerOnce:
		return !r.remembers("finalizer")
	}
	return true
}

// onEdges reacts only when it sees the content of a child change. It needs to see that of both: a resync between the
// two writes to one child lets it see that one's.
func (r *toy) onEdges() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, ok := e.ObjectOld.(*corev1.ConfigMap)
			after, also := e.ObjectNew.(*corev1.ConfigMap)
			if ok && also && len(before.Data) != len(after.Data) {
				r.remember("edge of " + after.Name)
				for _, req := range parent(ctx, after) {
					q.Add(req)
				}
			}
		},
	}
}

func (r *toy) makeInTwoSteps(ctx context.Context, want *corev1.ConfigMap) error {
	data := want.Data
	want.Data = nil
	if err := r.client.Create(ctx, want); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	before := want.DeepCopy()
	want.Data = data
	return r.client.Patch(ctx, want, client.MergeFrom(before))
}

// makeAndRecord takes another name if one is taken, and records afterwards that it has made a child.
func (r *toy) makeAndRecord(ctx context.Context, o *infrav1.LocalCluster, want *corev1.ConfigMap) error {
	note := "made" + want.Name
	if o.Annotations[note] != "" {
		return nil
	}
	err := r.client.Create(ctx, want.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		want.Name = fmt.Sprintf("%s-%s", want.Name, rand.String(5))
		err = r.client.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	before := o.DeepCopy()
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, note, "yes")
	status := o.Status.DeepCopy()
	err = r.client.Patch(ctx, o, client.MergeFrom(before))
	o.Status = *status
	return err
}

// makeUnlessSeen makes a child under a name of its own if the cache shows none, and so another while the cache is late.
func (r *toy) makeUnlessSeen(ctx context.Context, want *corev1.ConfigMap) error {
	var all corev1.ConfigMapList
	if err := r.client.List(ctx, &all, client.InNamespace(want.Namespace), client.MatchingLabels(want.Labels)); err != nil {
		return err
	}
	for _, have := range all.Items {
		if have.Annotations["for"] == want.Name {
			return nil
		}
	}
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, "for", want.Name)
	err := r.client.Create(ctx, want.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		want.Name = fmt.Sprintf("%s-%s", want.Name, rand.String(5))
		err = r.client.Create(ctx, want)
	}
	return err
}

func (r *toy) sawEdges() bool {
	return r.remembers("edge of "+toyName+"-a") && r.remembers("edge of "+toyName+"-b")
}
