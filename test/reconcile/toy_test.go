package reconcile

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	polder "github.com/polder-kaas/polder/internal/reconcile"
)

const (
	toyName      = "toy"
	toyFinalizer = "test.polder.dev/toy"
	toyLabel     = "test.polder.dev/toy"
	toyPort      = 6443
	badPort      = 666
)

// toy is a reconciler that is right, or has one fault. For each LocalCluster, a kind nobody else
// works on here, it keeps two ConfigMaps that say the cluster's port, removes them in the end, and
// refuses one port.
type toy struct {
	client client.Client
	live   client.Reader
	fault  fault

	mu     sync.Mutex
	memory map[string]bool // only faults use it
}

func (r *toy) setup(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("toy").For(&infrav1.LocalCluster{})
	switch r.fault {
	case doesNotWatch:
	case isDrivenByEdges:
		b = b.Watches(&corev1.ConfigMap{}, r.onEdges())
	default:
		b = b.Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(parent))
	}
	return b.Complete(r)
}

// parent finds the object a child belongs to, also when its label is gone.
func parent(_ context.Context, o client.Object) []reconcile.Request {
	if name := o.GetName(); len(name) > len(toyName) && name[:len(toyName)] == toyName {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: toyName}}}
	}
	return nil
}

// Reconcile keeps the children, or removes them.
func (r *toy) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	o := &infrav1.LocalCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return res, client.IgnoreNotFound(err)
	}
	before := o.DeepCopy()
	if !o.DeletionTimestamp.IsZero() {
		return polder.Finish(res, r.remove(ctx, o), polder.Write(ctx, r.client, before, o))
	}
	if r.wantsFinalizer(o) && controllerutil.AddFinalizer(o, toyFinalizer) {
		r.remember("finalizer")
		return res, r.client.Patch(ctx, o, client.MergeFrom(before))
	}
	if r.fault == isReadyTooSoon && !r.isReady(o) {
		r.setReady(o, metav1.ConditionTrue, "Ready")
		if err := polder.Write(ctx, r.client, before, o); err != nil {
			return res, err
		}
		before = o.DeepCopy()
	} else if r.fault == isReadyTooSoon {
		return res, nil
	}
	if err := r.keep(ctx, o); err != nil {
		return res, err
	}
	return r.finish(ctx, before, o)
}

func (r *toy) isReady(o *infrav1.LocalCluster) bool {
	return meta.IsStatusConditionTrue(o.Status.Conditions, "Ready")
}

func (r *toy) setReady(o *infrav1.LocalCluster, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: o.Generation})
}

// keep makes the children, or reports why not.
func (r *toy) keep(ctx context.Context, o *infrav1.LocalCluster) error {
	if o.Spec.ControlPlaneEndpoint.Port == badPort || r.fault == doesNotRecover && r.remembers("bad") {
		r.remember("bad")
		if r.fault != doesNotSayWhatIsWrong {
			r.setReady(o, metav1.ConditionFalse, "BadPort")
		}
		return nil
	}
	if r.fault == makesChildrenOnce && r.isReady(o) {
		return nil
	}
	for _, want := range r.children(o) {
		if err := r.keepChild(ctx, o, want); err != nil {
			return err
		}
	}
	if r.fault == isDrivenByEdges && !r.sawEdges() || r.fault == doesNotRestoreStatus && r.remembers("status") {
		return nil
	}
	r.remember("status")
	r.setReady(o, metav1.ConditionTrue, "Ready")
	return nil
}

// children have no owner references, so nobody else removes them.
func (r *toy) children(o *infrav1.LocalCluster) (all []*corev1.ConfigMap) {
	for _, x := range []string{"-a", "-b"} {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + x, Labels: map[string]string{toyLabel: o.Name}},
			Data:       map[string]string{"port": fmt.Sprint(o.Spec.ControlPlaneEndpoint.Port)},
		})
	}
	return all
}

func (r *toy) keepChild(ctx context.Context, o *infrav1.LocalCluster, want *corev1.ConfigMap) error {
	switch r.fault {
	case makesWhatItDoesNotSee:
		return r.makeUnlessSeen(ctx, want)
	case recordsTooLate:
		return r.makeAndRecord(ctx, o, want)
	case isDrivenByEdges:
		return r.makeInTwoSteps(ctx, want)
	}
	have := &corev1.ConfigMap{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		// An API server that has begun to delete an object without finalizers goes on, also if one is added meanwhile.
		// Nobody else would remove what is made then.
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(o), &infrav1.LocalCluster{}); err != nil {
			return err
		}
		return r.client.Create(ctx, want)
	}
	before := have.DeepCopy()
	if r.fault != doesNotRestoreLabels {
		labels := maps.Clone(want.Labels)
		maps.Copy(labels, have.Labels)
		have.Labels = labels
	}
	if r.fault != doesNotRestoreContent {
		have.Data = want.Data
	}
	return polder.Write(ctx, r.client, before, have)
}

// finish writes what has changed.
func (r *toy) finish(ctx context.Context, before, o *infrav1.LocalCluster) (res reconcile.Result, err error) {
	switch r.fault {
	case writesEachTime:
		return res, r.client.Status().Update(ctx, o)
	case neverStopsWriting:
		o.Status.Addresses = fmt.Sprint(time.Now().UnixNano() % 1e9)
	case removesAnnotations:
		o.Annotations = nil
	case addsFinalizerLast:
		controllerutil.AddFinalizer(o, toyFinalizer)
	case asksAgainSoon:
		res.RequeueAfter = time.Second
	}
	return res, polder.Write(ctx, r.client, before, o)
}

// remove deletes the children, unless somebody holds the object.
func (r *toy) remove(ctx context.Context, o *infrav1.LocalCluster) error {
	if o.Annotations["hold"] != "" {
		if r.fault != doesNotSayWhatIsInTheWay {
			r.setReady(o, metav1.ConditionFalse, "Held")
		}
		return nil
	}
	for _, c := range r.children(o) {
		if err := r.deleteChild(ctx, c); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(o, toyFinalizer)
	return nil
}

// deleteChild deletes the child of this name, as it is now: what is cached may not show it yet.
func (r *toy) deleteChild(ctx context.Context, c *corev1.ConfigMap) error {
	if r.fault == deletesByName {
		return client.IgnoreNotFound(r.client.Delete(ctx, c))
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, c, client.Preconditions{UID: &c.UID}))
}
