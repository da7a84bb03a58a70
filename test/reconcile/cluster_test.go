package reconcile

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local"
	"github.com/polder-kaas/polder/internal/providers/local/cluster"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/watch"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

// The hosts are real ones, and Cluster API is who makes LocalClusters its own, and deletes them.
func TestLocalCluster(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	h := &hosts{plane: p, Launcher: launch.Launcher{HostsDir: hostapi.HostsDir(p.Data), Binary: filepath.Join(p.Tree.Bin, "polderd")}}
	kind := &infrav1.LocalCluster{}
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: func(ctx context.Context, mgr ctrl.Manager) error {
			w := watch.New()
			r := &cluster.Reconciler{Client: mgr.GetClient(), Hosts: h.Launcher, Watcher: w, Clock: clock.RealClock{}}
			return errors.Join(mgr.Add(w), r.SetupWithManager(ctx, mgr, controller.Options{}))
		},
		Kinds:        []client.Object{kind},
		CreateInputs: h.makeCluster,
		Delete:       deleteCluster,
		CheckDeleted: h.gone,
		Normalize:    withoutAddresses,
		User:         local.User,
		Timeout:      patience,
		BadInputs: []reconciletest.Fault{{
			Name: "endpoint", Timing: reconciletest.AfterSettled,
			Break:         patched(clusterName, func(o *infrav1.LocalCluster) { o.Spec.ControlPlaneEndpoint.Port++ }),
			CheckReported: reconciletest.ExpectReason(kind, clusterName, infrav1.ReadyCondition, infrav1.EndpointChangeReason),
			Repair:        patched(clusterName, func(o *infrav1.LocalCluster) { o.Spec.ControlPlaneEndpoint.Port-- }),
		}},
		DeleteBlockers: []reconciletest.Fault{{
			Name:          "a host that hangs",
			ReportTimeout: patience, // it is asked twice, and given time to answer
			Break:         h.signal(syscall.SIGSTOP),
			CheckReported: message(kind, clusterName, infrav1.ReadyCondition, "process"),
			Repair:        h.signal(syscall.SIGCONT),
		}},
	})
}

// signal sends a signal to the host.
func (h *hosts) signal(s syscall.Signal) reconciletest.Action {
	return func(_ context.Context, _ client.Client, namespace string) error {
		pid, err := filelock.Holder(h.dir(namespace).LockFile())
		if err != nil || pid == 0 {
			return errors.Join(errors.New("the host does not run"), err)
		}
		return syscall.Kill(pid, s)
	}
}

// patience is generous: test machines are shared and slow at times.
const patience = 4 * time.Minute

// clusterName is that of the Cluster and of its LocalCluster.
const clusterName = "one"

// deleteCluster deletes the Cluster and the LocalCluster; one with an owner reference is left to Cluster API.
func deleteCluster(ctx context.Context, c client.Client, namespace string) error {
	return errors.Join(
		deleteUnowned(ctx, c, namespace, clusterName, &clusterv1.Cluster{}),
		deleteUnowned(ctx, c, namespace, clusterName, &infrav1.LocalCluster{}),
	)
}

func deleteUnowned(ctx context.Context, c client.Client, namespace, name string, o client.Object) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil || len(o.GetOwnerReferences()) > 0 {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(c.Delete(ctx, o))
}
