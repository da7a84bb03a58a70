package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/allowance"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/text"
)

// bootstrapDataKey is where Cluster API's bootstrap providers put their data in a Secret.
const bootstrapDataKey = "value"

// waitForPrerequisites waits for what a machine needs before it can be made.
func (r *Reconciler) waitForPrerequisites(_ context.Context, s *scope) error {
	if s.infra == nil || !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForInfrastructure,
			"waiting for the cluster's infrastructure")
		return reconcile.Wait(0, "the cluster's infrastructure")
	}
	if s.machine.Spec.Bootstrap.DataSecretName == nil {
		s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForBootstrapDataReason, "%s",
			r.missingBootstrapDataMessage(s))
		return reconcile.Wait(0, "bootstrap data")
	}
	return nil
}

// missingBootstrapDataMessage says what the machine waits for: workers get their data when there is an API.
func (r *Reconciler) missingBootstrapDataMessage(s *scope) string {
	if !util.IsControlPlaneMachine(s.machine) &&
		!ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return "waiting for the control plane to be initialised"
	}
	return "waiting for bootstrap data"
}

// readHostStatus asks the host for its version and for the machine, which it may not know yet.
func (r *Reconciler) readHostStatus(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := s.host.Status(ctx)
	if err != nil {
		return s.reportHostError(err)
	}
	s.hostKubernetesVersion, s.hostProtocol = all.Kubernetes, all.Protocol
	for _, m := range all.Machines {
		if m.UID == string(s.local.UID) {
			s.status = &m
		}
	}
	return nil
}

// reportHostError sets a condition that says why the host did not do what it was asked to.
func (s *scope) reportHostError(err error) error {
	switch {
	case errors.Is(err, hostapi.ErrNotRunning):
		s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForHostReason,
			"the cluster's host does not answer; it is being started")
		return reconcile.Wait(500*time.Millisecond, "the cluster's host")
	case errors.Is(err, context.DeadlineExceeded):
		s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForHostReason,
			"the cluster's host runs but does not answer within %s", callTimeout)
	default:
		s.setCondition(infrav1.BootedCondition, false, infrav1.BootFailedReason, "%s", err)
	}
	return err
}

// createMachine gives the machine to its host, unless the host knows it. The provider ID depends on nothing but names,
// so it is the same however often this is tried.
func (r *Reconciler) createMachine(ctx context.Context, s *scope) error {
	id := fmt.Sprintf("local://%s/%s/%s", s.local.Namespace, s.cluster.Name, s.local.Name)
	if s.status == nil && s.wasNode() {
		s.reportLost()
		return reconcile.Wait(0, "a machine that is lost") // its deletion is the next that happens to it
	}
	if s.status == nil || s.lacksConfiguration() {
		spec, err := r.machineSpec(ctx, s, id)
		if err != nil {
			s.setCondition(infrav1.BootedCondition, false, infrav1.WaitingForBootstrapDataReason, "%s", err)
			return err
		}
		if err := allowance.MarkHost(filepath.Dir(r.Hosts.HostsDir), r.Hosts.Dir(string(s.infra.UID))); err != nil {
			return err
		}
		pctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := s.host.PutMachine(pctx, spec); err != nil {
			return s.reportHostError(err)
		}
		if err := r.readHostStatus(ctx, s); err != nil {
			return err
		}
	}
	s.local.Spec.ProviderID = id
	return nil
}

// wasNode says that the machine has been a node of its cluster, as Cluster API remembers. Its data is not to be had
// again: made anew, the only machine of a control plane would begin an empty cluster under the old name.
func (s *scope) wasNode() bool {
	booted := s.conditions.Get(infrav1.BootedCondition)
	return s.machine.Status.NodeRef.IsDefined() || booted != nil && booted.Status == metav1.ConditionTrue
}

// reportLost says that the machine is gone, and what to do.
func (s *scope) reportLost() {
	next := fmt.Sprintf("health checks of the stack replace it; without them, delete Machine %s", s.machine.Name)
	if util.IsControlPlaneMachine(s.machine) {
		next = fmt.Sprintf("if others of the control plane run, health checks of the stack replace it, or the deletion of Machine %s; "+
			"if it was the only one, all that was in the cluster is lost, unless polder restore brings it back", s.machine.Name)
	}
	s.setCondition(infrav1.BootedCondition, false, infrav1.MachineLostReason,
		"the files of the machine are gone, and it is not made anew; %s", next)
	s.setCondition(infrav1.ProcessesRunningCondition, false, infrav1.MachineLostReason,
		"the files of the machine are gone")
}

// lacksConfiguration says that the machine was made by an older polderd, which did not hand over its cluster's
// configuration, and cannot boot without.
func (s *scope) lacksConfiguration() bool {
	return s.hostProtocol >= hostapi.JoinProtocol && s.status.ControlPlane && !s.status.Boot.Done &&
		!s.status.Configured && s.machine.Spec.Bootstrap.ConfigRef.Kind == "KubeadmConfig"
}

func (r *Reconciler) machineSpec(ctx context.Context, s *scope, providerID string) (hostapi.MachineSpec, error) {
	var secret corev1.Secret
	name := *s.machine.Spec.Bootstrap.DataSecretName
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.local.Namespace, Name: name}, &secret); err != nil {
		return hostapi.MachineSpec{}, fmt.Errorf("reading bootstrap data: %w", err)
	}
	data, ok := secret.Data[bootstrapDataKey]
	if !ok {
		return hostapi.MachineSpec{}, fmt.Errorf("reading bootstrap data: Secret %s has no key %q", name, bootstrapDataKey)
	}
	configuration, err := r.clusterConfiguration(ctx, s)
	if err != nil {
		return hostapi.MachineSpec{}, err
	}
	return hostapi.MachineSpec{
		Name: s.local.Name, Node: s.machine.Name, UID: string(s.local.UID),
		ControlPlane: util.IsControlPlaneMachine(s.machine),
		Version:      s.machine.Spec.Version,
		ProviderID:   providerID,
		Zone:         s.machine.Spec.FailureDomain,
		Capacity:     s.local.Spec.Capacity, Labels: s.local.Spec.NodeLabels, Taints: s.local.Spec.NodeTaints,
		UserData: data, ClusterConfiguration: configuration,
	}, nil
}

// drainAPIServer takes the API server of a machine that will go out of service, while its etcd is still a member: after
// that, requests to it would fail.
func (r *Reconciler) drainAPIServer(ctx context.Context, s *scope) error {
	if s.machine.DeletionTimestamp.IsZero() || !util.IsControlPlaneMachine(s.machine) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	return s.host.DrainMachine(ctx, s.local.Name)
}

// bootGracePeriod is how long a boot may take before conditions say where it is. Most take a third of it, and
// every changed condition message makes Cluster API write five objects.
const bootGracePeriod = 15 * time.Second

// reportStatus sets status and conditions from what the host says of the machine.
func (r *Reconciler) reportStatus(_ context.Context, s *scope) error {
	if s.status == nil {
		return errors.New("the cluster's host does not know the machine")
	}
	m := *s.status
	s.local.Status.Initialization.Provisioned = ptr.To(true)
	s.local.Status.FailureDomain = s.machine.Spec.FailureDomain
	s.local.Status.Addresses = []clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: m.Address}, {Type: clusterv1.MachineHostName, Address: s.machine.Name},
	}
	if left := bootGracePeriod - r.Clock.Since(s.local.CreationTimestamp.Time); left > 0 && isHealthy(m) &&
		!m.IsRunning() {
		const text = "the machine is starting"
		s.setCondition(infrav1.BootedCondition, false, infrav1.BootingReason, text)
		s.setCondition(infrav1.ProcessesRunningCondition, false, infrav1.ProcessesWaitingReason, text)
		s.reportConfigurationHonored(m)
		return reconcile.Wait(left, "the boot")
	}
	r.reportBoot(s, m)
	s.reportConfigurationHonored(m)
	r.reportProcesses(s, m)
	return nil
}

// isHealthy says that nothing has gone wrong so far: no process has ended, and the boot has no problem.
func isHealthy(m hostapi.MachineStatus) bool {
	return !m.Off && !m.Partitioned && m.Boot.Problem == "" &&
		!slices.ContainsFunc(m.Processes, func(p hostapi.ProcessStatus) bool { return p.LastExit != "" })
}

func (r *Reconciler) reportBoot(s *scope, m hostapi.MachineStatus) {
	b := m.Boot
	switch {
	case b.Done:
		s.setCondition(infrav1.BootedCondition, true, infrav1.BootedReason, "")
	case b.Problem != "":
		s.setCondition(infrav1.BootedCondition, false, infrav1.BootFailedReason,
			"attempt %d: %s", b.Attempts, text.Truncate(b.Problem, 2000))
	case b.Step != "":
		s.setCondition(infrav1.BootedCondition, false, infrav1.BootingReason, "kubeadm is at %s", b.Step)
	default:
		s.setCondition(infrav1.BootedCondition, false, infrav1.BootingReason, "the machine is starting")
	}
}

func (s *scope) reportConfigurationHonored(m hostapi.MachineStatus) {
	const c = infrav1.ConfigurationHonoredCondition
	if not := m.Boot.NotHonored; len(not) > 0 {
		s.setCondition(c, false, infrav1.ConfigurationNotHonoredReason,
			"cannot be done by a machine that is only processes: %s", text.Truncate(strings.Join(not, "; "), 4000))
		return
	}
	s.setCondition(c, true, infrav1.ConfigurationHonoredReason, "")
}

func (r *Reconciler) reportProcesses(s *scope, m hostapi.MachineStatus) {
	const c = infrav1.ProcessesRunningCondition
	if m.Off {
		s.setCondition(c, false, infrav1.PoweredOffReason, "the machine is switched off")
		return
	}
	if m.Partitioned {
		s.setCondition(c, false, infrav1.PartitionedReason,
			"the machine is cut off from the network; connect it again with: polder machine fail %s --how continue", m.Name)
		return
	}
	for _, p := range m.Processes {
		if !p.Ready && p.LastExit != "" {
			message := fmt.Sprintf("%s %s", p.Name, p.LastExit)
			if n := len(p.Output); n > 1 {
				message += "; before that: " + strings.Join(p.Output[max(0, n-5):n-1], " | ")
			}
			s.setCondition(c, false, infrav1.ProcessFailingReason, "%s", text.Truncate(message, 2000))
			r.recordEvent(s, corev1.EventTypeWarning, infrav1.ProcessFailingReason, message)
			return
		}
	}
	switch {
	case m.IsRunning() && !m.ControlPlane:
		s.setCondition(c, true, infrav1.SimulatedReason, "")
	case m.IsRunning():
		s.setCondition(c, true, infrav1.ProcessesRunningReason, "")
	case m.Problem != "":
		s.setCondition(c, false, infrav1.ProcessesWaitingReason, "%s", m.Problem)
	default:
		s.setCondition(c, false, infrav1.ProcessesWaitingReason, "waiting for %s", strings.Join(pendingParts(m), ", "))
	}
}

func pendingParts(m hostapi.MachineStatus) (what []string) {
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

// removeMachine ends the machine and removes its files.
func (r *Reconciler) removeMachine(ctx context.Context, s *scope) error {
	s.setCondition(infrav1.BootedCondition, false, infrav1.DeletingReason, "")
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
	err := s.host.DeleteMachine(ctx, s.local.Name)
	if !errors.Is(err, hostapi.ErrNotRunning) {
		return err
	}
	// The host cannot be asked; but without a directory there is nothing that it would start again.
	if _, statErr := os.Stat(string(r.Hosts.Dir(string(s.infra.UID)).MachineDir(s.local.Name))); errors.Is(statErr,
		os.ErrNotExist) {
		return nil
	}
	if !s.infra.DeletionTimestamp.IsZero() {
		return nil // the host goes with all its machines
	}
	return reconcile.Wait(500*time.Millisecond, "the cluster's host, which is being started, to remove the machine")
}
