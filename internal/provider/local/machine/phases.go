package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// bootstrapKey is where Cluster API's bootstrap providers put their data in a Secret.
const bootstrapKey = "value"

// awaitHost waits for what a machine needs before it can be made.
func (r *Reconciler) awaitHost(_ context.Context, s *scope) error {
	if s.infra == nil || !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		s.set(infrav1.BootedCondition, false, infrav1.WaitingForInfrastructure, "waiting for the cluster's infrastructure")
		return reconcile.Wait(0, "the cluster's infrastructure")
	}
	if s.machine.Spec.Bootstrap.DataSecretName == nil {
		s.set(infrav1.BootedCondition, false, infrav1.WaitingForBootstrapDataReason, "%s", r.noDataReason(s))
		return reconcile.Wait(0, "bootstrap data")
	}
	return nil
}

// noDataReason says for whom the machine waits: workers get their data when there is an API.
func (r *Reconciler) noDataReason(s *scope) string {
	if !util.IsControlPlaneMachine(s.machine) && !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return "waiting for the control plane to be initialised"
	}
	return "waiting for bootstrap data"
}

// look asks the host whether it knows the machine.
func (r *Reconciler) look(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := s.host.Status(ctx)
	if err != nil {
		return s.unanswered(err)
	}
	s.runs = all.Kubernetes
	for _, m := range all.Machines {
		if m.UID == string(s.local.UID) {
			s.status = &m
		}
	}
	return nil
}

// unanswered says why the host did not do what it was asked to.
func (s *scope) unanswered(err error) error {
	switch {
	case errors.Is(err, hostapi.ErrNotRunning):
		s.set(infrav1.BootedCondition, false, infrav1.WaitingForHostReason, "the cluster's host does not answer; it is being started")
		return reconcile.Wait(500*time.Millisecond, "the cluster's host")
	case errors.Is(err, context.DeadlineExceeded):
		s.set(infrav1.BootedCondition, false, infrav1.WaitingForHostReason, "the cluster's host runs but does not answer within %s", callTimeout)
	default:
		s.set(infrav1.BootedCondition, false, infrav1.BootFailedReason, "%s", err)
	}
	return err
}

// put gives a machine to the host that does not know it yet. Its provider ID depends on nothing but
// names, so it is the same however often this is tried.
func (r *Reconciler) put(ctx context.Context, s *scope) error {
	id := fmt.Sprintf("local://%s/%s/%s", s.local.Namespace, s.cluster.Name, s.local.Name)
	if s.status == nil {
		spec, err := r.spec(ctx, s, id)
		if err != nil {
			s.set(infrav1.BootedCondition, false, infrav1.WaitingForBootstrapDataReason, "%s", err)
			return err
		}
		pctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := s.host.Put(pctx, spec); err != nil {
			return s.unanswered(err)
		}
		if err := r.look(ctx, s); err != nil {
			return err
		}
	}
	s.local.Spec.ProviderID = id
	return nil
}

func (r *Reconciler) spec(ctx context.Context, s *scope, providerID string) (hostapi.Machine, error) {
	var secret corev1.Secret
	name := *s.machine.Spec.Bootstrap.DataSecretName
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.local.Namespace, Name: name}, &secret); err != nil {
		return hostapi.Machine{}, fmt.Errorf("reading bootstrap data: %w", err)
	}
	data, ok := secret.Data[bootstrapKey]
	if !ok {
		return hostapi.Machine{}, fmt.Errorf("reading bootstrap data: Secret %s has no key %q", name, bootstrapKey)
	}
	return hostapi.Machine{
		Name: s.local.Name, Node: s.machine.Name, UID: string(s.local.UID),
		ControlPlane: util.IsControlPlaneMachine(s.machine),
		Version:      s.machine.Spec.Version,
		ProviderID:   providerID,
		Zone:         s.machine.Spec.FailureDomain,
		Capacity:     s.local.Spec.Capacity, Labels: s.local.Spec.NodeLabels, Taints: s.local.Spec.NodeTaints,
		UserData: data,
	}, nil
}

// drain takes the API server of a machine that will go out of service, while its store is still
// a member: after that, requests to it would fail.
func (r *Reconciler) drain(ctx context.Context, s *scope) error {
	if s.machine.DeletionTimestamp.IsZero() || !util.IsControlPlaneMachine(s.machine) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	return s.host.Drain(ctx, s.local.Name)
}

// patience is how long a boot may take before people are told where it is. Most take a third of it, and
// every sentence about one makes Cluster API write five objects.
const patience = 15 * time.Second

// report says how the machine is.
func (r *Reconciler) report(_ context.Context, s *scope) error {
	if s.status == nil {
		return errors.New("the cluster's host does not know the machine")
	}
	m := *s.status
	s.local.Status.Initialization.Provisioned = ptr.To(true)
	s.local.Status.FailureDomain = s.machine.Spec.FailureDomain
	s.local.Status.Addresses = []clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: m.Address}, {Type: clusterv1.MachineHostName, Address: s.machine.Name},
	}
	if left := patience - time.Since(s.local.CreationTimestamp.Time); left > 0 && healthy(m) && !m.Running() {
		const text = "the machine is starting"
		s.set(infrav1.BootedCondition, false, infrav1.BootingReason, text)
		s.set(infrav1.ProcessesRunningCondition, false, infrav1.ProcessesWaitingReason, text)
		s.reportHonored(m)
		return reconcile.Wait(left, "the boot")
	}
	r.reportBoot(s, m)
	s.reportHonored(m)
	r.reportProcesses(s, m)
	return nil
}

// healthy says that nothing has gone wrong so far.
func healthy(m hostapi.MachineStatus) bool {
	return !m.Off && m.Boot.Problem == "" && !slices.ContainsFunc(m.Processes, func(p hostapi.Process) bool { return p.LastExit != "" })
}

func (r *Reconciler) reportBoot(s *scope, m hostapi.MachineStatus) {
	b := m.Boot
	switch {
	case b.Done:
		s.set(infrav1.BootedCondition, true, infrav1.BootedReason, "")
	case b.Problem != "":
		s.set(infrav1.BootedCondition, false, infrav1.BootFailedReason, "attempt %d: %s", b.Attempts, truncate(b.Problem, 2000))
	case b.Step != "":
		s.set(infrav1.BootedCondition, false, infrav1.BootingReason, "kubeadm is at %s", b.Step)
	default:
		s.set(infrav1.BootedCondition, false, infrav1.BootingReason, "the machine is starting")
	}
}

func (s *scope) reportHonored(m hostapi.MachineStatus) {
	const c = infrav1.ConfigurationHonoredCondition
	if not := m.Boot.NotHonored; len(not) > 0 {
		s.set(c, false, infrav1.ConfigurationNotHonoredReason, "cannot be done by a machine that is only processes: %s", truncate(strings.Join(not, "; "), 4000))
		return
	}
	s.set(c, true, infrav1.ConfigurationHonoredReason, "")
}

func (r *Reconciler) reportProcesses(s *scope, m hostapi.MachineStatus) {
	const c = infrav1.ProcessesRunningCondition
	if m.Off {
		s.set(c, false, infrav1.PoweredOffReason, "the machine is switched off")
		return
	}
	for _, p := range m.Processes {
		if !p.Ready && p.LastExit != "" {
			text := fmt.Sprintf("%s %s", p.Name, p.LastExit)
			if n := len(p.Output); n > 1 {
				text += "; before that: " + strings.Join(p.Output[max(0, n-5):n-1], " | ")
			}
			s.set(c, false, infrav1.ProcessFailingReason, "%s", truncate(text, 2000))
			r.event(s, corev1.EventTypeWarning, infrav1.ProcessFailingReason, text)
			return
		}
	}
	switch {
	case m.Running() && !m.ControlPlane:
		s.set(c, true, infrav1.SimulatedReason, "")
	case m.Running():
		s.set(c, true, infrav1.ProcessesRunningReason, "")
	case m.Problem != "":
		s.set(c, false, infrav1.ProcessesWaitingReason, "%s", m.Problem)
	default:
		s.set(c, false, infrav1.ProcessesWaitingReason, "waiting for %s", strings.Join(waitsFor(m), ", "))
	}
}

func waitsFor(m hostapi.MachineStatus) (what []string) {
	if !m.Boot.Done {
		what = append(what, "the boot")
	}
	if m.ControlPlane && len(m.Processes) == 0 {
		what = append(what, "its static pods")
	}
	for _, p := range m.Processes {
		if !p.Ready {
			what = append(what, p.Name)
		}
	}
	if !m.Registered {
		what = append(what, "the node's registration")
	}
	return what
}

// remove ends the machine and removes its files.
func (r *Reconciler) remove(ctx context.Context, s *scope) error {
	s.set(infrav1.BootedCondition, false, infrav1.DeletingReason, "")
	if s.host != nil {
		if err := r.removeFromHost(ctx, s); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(s.local, infrav1.MachineFinalizer)
	return nil
}

func (r *Reconciler) removeFromHost(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := s.host.Delete(ctx, s.local.Name)
	if !errors.Is(err, hostapi.ErrNotRunning) {
		return err
	}
	if _, statErr := os.Stat(string(r.Hosts.Dir(string(s.infra.UID)).Machine(s.local.Name))); errors.Is(statErr, os.ErrNotExist) {
		return nil
	}
	if !s.infra.DeletionTimestamp.IsZero() {
		return nil // the host goes with all its machines
	}
	return reconcile.Wait(500*time.Millisecond, "the cluster's host, which is being started, to remove the machine")
}
