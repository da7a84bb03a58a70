package reconcile

import (
	"context"
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local"
	"github.com/polder-kaas/polder/internal/providers/local/cluster"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/machine"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

const (
	machineName = "worker" // of the Machine and of its LocalMachine
	secretName  = "data"
	version     = "v1.37.1"
	tooOld      = "v1.20.0"
)

// The hosts are real ones but for the boot of machines, which does nothing; and workers join a
// cluster that is an imitation. Cluster API makes LocalMachines its own, and deletes them.
func TestLocalMachine(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := kubeversion.NewRange(version)
	if err != nil {
		t.Fatal(err)
	}
	h := &hosts{plane: p, Launcher: launch.Launcher{HostsDir: hostapi.HostsDir(p.Data), Binary: self}}
	w := imitateWorkload(t)
	kind := &infrav1.LocalMachine{}
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: func(ctx context.Context, mgr ctrl.Manager) error {
			w := watch.New()
			c := &cluster.Reconciler{Client: mgr.GetClient(), Hosts: h.Launcher, Watcher: w, Clock: clock.RealClock{}}
			m := &machine.Reconciler{
				Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Hosts: h.Launcher, Versions: versions, Watcher: w,
				Events: mgr.GetEventRecorder("test"), Clock: clock.RealClock{},
			}
			return errors.Join(mgr.Add(w), c.SetupWithManager(ctx, mgr, controller.Options{}), m.SetupWithManager(mgr, controller.Options{}))
		},
		Kinds: []client.Object{kind, &infrav1.LocalCluster{}},
		CreateInputs: func(ctx context.Context, c client.Client, namespace string) error {
			return errors.Join(h.makeCluster(ctx, c, namespace), makeSecret(w)(ctx, c, namespace), makeMachine(ctx, c, namespace))
		},
		Delete:       deleteMachine,
		CheckDeleted: h.gone,
		Normalize:    withoutAddresses,
		User:         local.User,
		Timeout:      patience,
		BadInputs: []reconciletest.Fault{
			{
				Name:          "version",
				Break:         patched(machineName, func(o *clusterv1.Machine) { o.Spec.Version = tooOld }),
				CheckReported: reconciletest.ExpectReason(kind, machineName, infrav1.ReadyCondition, infrav1.VersionNotSupportedReason),
				Repair:        patched(machineName, func(o *clusterv1.Machine) { o.Spec.Version = version }),
			},
			{
				Name: "no bootstrap data", Timing: reconciletest.FromStart,
				Break:         deleteSecret,
				CheckReported: reconciletest.ExpectReason(kind, machineName, infrav1.ReadyCondition, infrav1.WaitingForBootstrapDataReason),
				Repair:        makeSecret(w),
			},
		},
	})
}

func makeSecret(w *workload) reconciletest.Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		return c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}, Data: map[string][]byte{"value": w.userData(namespace)},
		})
	}
}

func deleteSecret(ctx context.Context, c client.Client, namespace string) error {
	return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}})
}

func makeMachine(ctx context.Context, c client.Client, namespace string) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: machineName, Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName}}
	return errors.Join(
		c.Create(ctx, &infrav1.LocalMachine{ObjectMeta: meta, Spec: infrav1.LocalMachineSpec{NodeLabels: map[string]string{"pool": "a"}}}),
		c.Create(ctx, &clusterv1.Machine{ObjectMeta: meta, Spec: clusterv1.MachineSpec{
			ClusterName: clusterName, Version: version, FailureDomain: "zone-a",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(secretName)},
			InfrastructureRef: reference("LocalMachine", machineName),
		}}),
	)
}

// deleteMachine deletes the machine together with its cluster.
func deleteMachine(ctx context.Context, c client.Client, namespace string) error {
	o := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machineName}}
	return errors.Join(
		client.IgnoreNotFound(c.Delete(ctx, o)),
		deleteUnowned(ctx, c, namespace, machineName, &infrav1.LocalMachine{}),
		deleteCluster(ctx, c, namespace),
	)
}
