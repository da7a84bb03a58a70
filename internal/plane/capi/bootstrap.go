package capi

import (
	"context"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/setup"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var bootstrap = managerKind{
	name:   "bootstrap",
	agent:  "cluster-api-kubeadm-bootstrap-manager",
	scheme: bootstrapParts,
	cache:  setup.ManagerCacheOptions,
	client: setup.ManagerClientOptions,
	remote: remoteAccess{setup.CreateSecretCachingClient, setup.ClusterCacheCacheOptions, setup.ClusterCacheClientOptions},
	setup:  setupBootstrap,
}

func setupBootstrap(ctx context.Context, m *manager) error {
	secrets, clusters, err := m.setupClusterCache(ctx)
	if err != nil {
		return err
	}
	if err := m.setupMigrator(ctx, map[client.Object]crdmigrator.ByObjectConfig{
		&bootstrapv1.KubeadmConfig{}:         {UseStatusForStorageVersionMigration: true},
		&bootstrapv1.KubeadmConfigTemplate{}: {},
	}); err != nil {
		return err
	}
	r := &kubeadmconfig.Reconciler{
		Client:              m.GetClient(),
		SecretCachingClient: secrets,
		APIReader:           m.GetAPIReader(),
		ClusterCache:        clusters,
		TokenTTL:            kubeadmconfig.DefaultTokenTTL,
	}
	if err := r.SetupWithManager(ctx, m, m.controllerOptions()); err != nil {
		return err
	}
	return m.setupWebhooks(&admission.KubeadmConfig{}, &admission.KubeadmConfigTemplate{})
}
