package capi

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/setup"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Time limits of Cluster API's own program.
const (
	etcdDialTimeout = 10 * time.Second
	etcdCallTimeout = 15 * time.Second
	// A control plane asks every etcd member in turn, and each may time out.
	controlPlaneReconcileTimeout = 3 * time.Minute
)

var controlPlane = managerKind{
	name:   "control-plane",
	agent:  "cluster-api-kubeadm-control-plane-manager",
	scheme: controlPlaneParts,
	cache:  setup.ManagerCacheOptions,
	client: setup.ManagerClientOptions,
	remote: remoteAccess{setup.CreateSecretCachingClient, setup.ClusterCacheCacheOptions, setup.ClusterCacheClientOptions},
	setup:  setupControlPlane,
}

func setupControlPlane(ctx context.Context, m *manager) error {
	secrets, clusters, err := m.setupClusterCache(ctx)
	if err != nil {
		return err
	}
	if err := m.setupMigrator(ctx, map[client.Object]crdmigrator.ByObjectConfig{
		&controlplanev1.KubeadmControlPlane{}:         {UseStatusForStorageVersionMigration: true},
		&controlplanev1.KubeadmControlPlaneTemplate{}: {},
	}); err != nil {
		return err
	}
	r := &kubeadmcontrolplane.Reconciler{
		Client:                      m.GetClient(),
		APIReader:                   m.GetAPIReader(),
		SecretCachingClient:         secrets,
		ClusterCache:                recheckingCache{ClusterCache: clusters, reader: m.GetClient(), clock: clock.RealClock{}},
		EtcdDialTimeout:             etcdDialTimeout,
		EtcdCallTimeout:             etcdCallTimeout,
		EtcdLogger:                  zap.NewNop(),
		RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
	}
	o := m.controllerOptions()
	o.ReconciliationTimeout = controlPlaneReconcileTimeout
	if err := r.SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	conversion.SetAPIVersionGetter(apiVersionGetter(m.GetClient()))
	return m.setupWebhooks(&admission.KubeadmControlPlane{}, &admission.ScaleValidator{Client: m.GetClient()},
		&admission.KubeadmControlPlaneTemplate{})
}
