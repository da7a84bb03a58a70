// Package machine reconciles LocalMachines: it hands them to their cluster's host and reports how
// they are.
package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/text"
)

// callTimeout bounds one request to a host.
const callTimeout = 5 * time.Second

// Reconciler keeps a machine for each LocalMachine.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // for Secrets, which are not cached
	Hosts     launch.Launcher
	Versions  kubeversion.Range
	Watcher   *watch.Watcher
	Events    events.EventRecorder
	Clock     clock.PassiveClock
}

// scope is what one reconciliation works on.
type scope struct {
	local                 *infrav1.LocalMachine
	conditions            reconcile.Conditions
	machine               *clusterv1.Machine
	cluster               *clusterv1.Cluster
	infra                 *infrav1.LocalCluster // nil while there is none
	host                  *hostapi.Client
	hostKubernetesVersion string                 // built into the host's program; empty: it does not say
	hostProtocol          int                    // what the host understands
	status                *hostapi.MachineStatus // nil if the host does not know the machine
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	ofCluster, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &infrav1.LocalMachineList{}, mgr.GetScheme())
	if err != nil {
		return err
	}
	ofMachine := util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("LocalMachine"))
	return ctrl.NewControllerManagedBy(mgr).Named("localmachine").
		For(&infrav1.LocalMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
		WatchesRawSource(source.TypedChannel(r.Watcher.Machines,
			&handler.TypedEnqueueRequestForObject[*infrav1.LocalMachine]{})).
		WithOptions(o).
		Complete(r)
}

// Reconcile brings one LocalMachine a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	local := &infrav1.LocalMachine{}
	if err := r.Client.Get(ctx, req.NamespacedName, local); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, local, infrav1.MachineFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	s := &scope{local: local}
	if known, err := r.gather(ctx, s); err != nil || !known {
		return ctrl.Result{}, err
	}
	if is, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, s.cluster, local); err != nil || is || requeue {
		return ctrl.Result{}, err
	}
	tracked := reconcile.Track(local)
	s.conditions = reconcile.NewConditions(local, &local.Status.Conditions, infrav1.BootedReason)
	// A version that cannot be run is refused first: waiting would not help. The host's status comes before what
	// depends on whether the host knows the machine.
	phases := []reconcile.Phase[*scope]{
		r.checkVersion, r.waitForPrerequisites, r.readHostStatus, r.restartOutdatedHost, r.createMachine, r.drainAPIServer,
		r.reportStatus,
	}
	if !local.DeletionTimestamp.IsZero() {
		phases = []reconcile.Phase[*scope]{r.removeMachine}
	}
	// The status is written however the phases end: a failure is a condition too.
	result, err := reconcile.Run(ctx, s, phases...)
	s.summarize()
	return reconcile.Finish(result, err, tracked.Write(ctx, r.Client))
}

// gather reads what belongs to the machine; it returns false while Cluster API has not yet said whose machine it is.
func (r *Reconciler) gather(ctx context.Context, s *scope) (bool, error) {
	deleted := !s.local.DeletionTimestamp.IsZero()
	var err error
	if s.machine, err = util.GetOwnerMachine(ctx, r.Client, s.local.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if s.machine == nil && !deleted {
		return false, nil
	}
	if s.cluster, err = util.GetClusterFromMetadata(ctx, r.Client, s.local.ObjectMeta); err != nil {
		// Without a Cluster there is no host to ask, and the finalizer must not stay for ever.
		if deleted && (client.IgnoreNotFound(err) == nil || errors.Is(err, util.ErrNoCluster)) {
			return true, nil
		}
		return false, client.IgnoreNotFound(err)
	}
	infra := &infrav1.LocalCluster{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: s.local.Namespace, Name: s.cluster.Spec.InfrastructureRef.Name},
		infra)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil {
		s.infra = infra
		s.host = hostapi.NewClient(r.Hosts.Dir(string(infra.UID)))
	}
	return true, nil
}

// summarize puts first what is in the way: a boot waits for a process that fails, not the other way round.
func (s *scope) summarize() {
	of := []string{infrav1.BootedCondition, infrav1.ProcessesRunningCondition}
	inTheWay := []string{infrav1.ProcessFailingReason, infrav1.PoweredOffReason, infrav1.PartitionedReason}
	if c := s.conditions.Get(infrav1.ProcessesRunningCondition); c != nil && slices.Contains(inTheWay, c.Reason) {
		slices.Reverse(of)
	}
	s.conditions.Set(s.conditions.Summarize(infrav1.ReadyCondition, of...))
}

func (s *scope) setCondition(condition string, ok bool, reason, format string, args ...any) {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	if format != "" {
		c.Message = fmt.Sprintf(format, args...)
	}
	s.conditions.Set(c)
}

// checkVersion refuses versions that cannot be run before anything is made.
func (r *Reconciler) checkVersion(_ context.Context, s *scope) error {
	if _, err := r.Versions.EmulatedVersion(s.machine.Spec.Version); err != nil {
		s.setCondition(infrav1.BootedCondition, false, infrav1.VersionNotSupportedReason, "%s", err)
		r.recordEvent(s, corev1.EventTypeWarning, infrav1.VersionNotSupportedReason, err.Error())
		return reconcile.Terminal(err)
	}
	return nil
}

func (r *Reconciler) recordEvent(s *scope, kind, reason, note string) {
	for _, o := range []client.Object{s.local, s.machine} {
		r.Events.Eventf(o, nil, kind, reason, "Reconcile", "%s", text.Truncate(note, 1000))
	}
}
