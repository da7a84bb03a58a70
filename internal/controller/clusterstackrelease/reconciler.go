// Package clusterstackrelease reconciles ClusterStackReleases: it fetches a release, applies its class and templates in
// the plane, and deletes them again when the release is deleted and no cluster uses it.
package clusterstackrelease

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/lineage/advice"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// fieldOwner owns the fields of objects that a release brings into the plane.
const fieldOwner = client.FieldOwner("polder-release")

// Reconciler reconciles ClusterStackReleases. All fields are needed.
type Reconciler struct {
	Client   client.Client     // reads from a cache that has the index of lineage.IndexClustersByClass
	Live     client.Client     // reads from the API server
	Releases *releases.Library // where releases come from
	Renderer Renderer
	Kinds    []apply.KindPattern // kinds that a release may bring into the plane
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Interval time.Duration // after which objects are applied again, even if nothing seems to have changed

	watches watches
	applied appliedCache
}

// Renderer renders the class of a release.
type Renderer interface {
	RenderClass(ctx context.Context, r *stack.Release, namespace string) ([]render.Object, error)
}

// scope is what one run works on.
type scope struct {
	object     *csv1.ClusterStackRelease
	tracked    *reconcile.Tracked[*csv1.ClusterStackRelease]
	conditions reconcile.Conditions
	name       version.ReleaseName
	loaded     *stack.Release
	stack      *csv1.ClusterStack // it belongs to; may be nil
	users      []string           // clusters that keep it from being deleted
}

// newScope returns the scope of a release that was just read.
func newScope(o *csv1.ClusterStackRelease) *scope {
	return &scope{
		object: o, tracked: reconcile.Track(o),
		conditions: reconcile.NewConditions(o, &o.Status.Conditions, csv1.ReasonReady),
	}
}

// Reconcile brings one release closer to what is wanted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &csv1.ClusterStackRelease{}
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		if apierrors.IsNotFound(err) {
			r.applied.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := newScope(o)
	var err error
	if s.stack, err = lineage.StackOfRelease(ctx, r.Client, o); err != nil {
		return ctrl.Result{}, err
	}
	phases := []reconcile.Phase[*scope]{r.checkName, r.ensureFinalizer, r.fetchContent, r.applyClass, r.waitForClass}
	if !o.DeletionTimestamp.IsZero() {
		// Without checkName: an object with an invalid name must go, too.
		phases = []reconcile.Phase[*scope]{r.checkNotInUse, r.pruneObjects}
	}
	result, err := reconcile.Run(ctx, s, phases...)
	r.summarize(s)
	if gone := !o.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(o, csv1.ReleaseFinalizer); gone {
		r.applied.Forget(req.NamespacedName)
		return reconcile.Finish(ctrl.Result{}, nil, r.writeMetadata(ctx, s))
	}
	if result.RequeueAfter == 0 && err == nil && o.DeletionTimestamp.IsZero() {
		result.RequeueAfter = wait.Jitter(r.Interval, 0.2)
	}
	return reconcile.Finish(result, err, r.write(ctx, s))
}

// checkName refuses an object whose name cannot be that of a release.
func (r *Reconciler) checkName(_ context.Context, s *scope) error {
	name, err := version.ParseReleaseName(s.object.Name)
	if err == nil && name.Tag() != s.object.Name {
		err = fmt.Errorf("%s is not how a release is spelled here; call it %s", s.object.Name, name.Tag())
	}
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionDownloaded, csv1.ReasonNameInvalid, err.Error())
		return reconcile.Terminal(err)
	}
	s.name = name
	return nil
}

// ensureFinalizer keeps the object until its objects are deleted. It is written before anything is applied.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) error {
	if !controllerutil.AddFinalizer(s.object, csv1.ReleaseFinalizer) {
		return nil
	}
	return r.write(ctx, s)
}

// write writes what has changed since the last write.
func (r *Reconciler) write(ctx context.Context, s *scope) error {
	s.updateReadyCondition()
	return s.tracked.Write(ctx, r.Client)
}

// writeMetadata writes the removal of the finalizer alone: after it, there is no object whose status could be written.
func (r *Reconciler) writeMetadata(ctx context.Context, s *scope) error {
	s.object.Status = *s.tracked.Stored().Status.DeepCopy()
	return r.write(ctx, s)
}

// updateReadyCondition summarises all conditions in Ready. It is never written without the others.
func (s *scope) updateReadyCondition() metav1.Condition {
	o := s.object
	if o.Spec.ProviderRef != nil {
		s.conditions.Set(lineage.ProviderRefIgnored())
	} else {
		s.conditions.Remove(csv1.ConditionProviderRefIgnored)
	}
	ready := s.conditions.Summarize(csv1.ConditionReady, csv1.ConditionDownloaded, csv1.ConditionApplied,
		csv1.ConditionClassReady)
	if !o.DeletionTimestamp.IsZero() {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, csv1.ReasonDeleting, "the class and its templates are being removed"
		if c := s.conditions.Get(csv1.ConditionApplied); c != nil && c.Reason == csv1.ReasonInUse {
			ready.Reason, ready.Message = c.Reason, c.Message
		}
	}
	s.conditions.Set(ready)
	o.Status.Ready = ptr.To(ready.Status == metav1.ConditionTrue)
	o.Status.Actor, o.Status.NextStep = advice.For(advice.Object{
		Kind: "ClusterStackRelease", Meta: &o.ObjectMeta, Class: s.className(), Stack: s.stack, Clusters: s.users,
		Conditions: o.Status.Conditions,
	})
	return ready
}

// className is the name of the class that the release has, or would have.
func (s *scope) className() string {
	name, err := version.ParseReleaseName(s.object.Name)
	if err != nil {
		return s.object.Name
	}
	return name.Class()
}

// summarize ends a run: it records events for what has changed.
func (r *Reconciler) summarize(s *scope) {
	ready, o := s.updateReadyCondition(), s.object
	begin := s.tracked.Initial().Status.Conditions
	was := meta.IsStatusConditionTrue(begin, csv1.ConditionReady)
	old := meta.FindStatusCondition(begin, csv1.ConditionReady)
	is := ready.Status == metav1.ConditionTrue
	switch {
	case is && !was:
		r.Events.Eventf(o, nil, "Normal", csv1.ReasonReady, "Reconcile", "clusters can be made of it, with Kubernetes %s",
			o.Status.KubernetesVersion)
	case !is && ready.Status == metav1.ConditionFalse && (old == nil || old.Reason != ready.Reason) &&
		warningReasons[ready.Reason]:
		r.Events.Eventf(o, nil, "Warning", ready.Reason, "Reconcile", "%s", ready.Message)
	}
}

// warningReasons are the reasons for which a Warning is recorded.
var warningReasons = map[string]bool{
	csv1.ReasonNameInvalid: true, csv1.ReasonNotFound: true, csv1.ReasonDigestChanged: true, csv1.ReasonInvalid: true,
	csv1.ReasonRefused: true, csv1.ReasonApplyFailed: true, csv1.ReasonInUse: true, csv1.ReasonSourceUnreachable: true,
	csv1.ReasonSourceInvalid: true, csv1.ReasonSourceMissing: true,
}
