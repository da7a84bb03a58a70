package capi

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourcesetbinding"
	"sigs.k8s.io/cluster-api/core/reconcilers/extensionconfig"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinepool"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	topologymachinedeployment "sigs.k8s.io/cluster-api/core/reconcilers/topology/machinedeployment"
	topologymachineset "sigs.k8s.io/cluster-api/core/reconcilers/topology/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	"sigs.k8s.io/cluster-api/util/index"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/topology/nodelabels"
)

// Grace periods of Cluster API's own program.
const (
	remoteConnectionGracePeriod = 50 * time.Second
	remoteConditionsGracePeriod = 5 * time.Minute
)

var core = managerKind{
	name:   "core",
	agent:  "cluster-api-controller-manager",
	scheme: coreParts,
	cache:  setup.ManagerCacheOptions,
	client: setup.ManagerClientOptions,
	remote: remoteAccess{setup.CreateSecretCachingClient, setup.ClusterCacheCacheOptions, setup.ClusterCacheClientOptions},
	setup:  setupCore,
}

func setupCore(ctx context.Context, m *manager) error {
	if err := index.AddDefaultIndexes(ctx, m); err != nil {
		return err
	}
	_, clusters, err := m.setupClusterCache(ctx)
	if err != nil {
		return err
	}
	if err := m.setupMigrator(ctx, coreMigrations()); err != nil {
		return err
	}
	secretNames, err := newSecretMetadataCache(m)
	if err != nil {
		return err
	}
	runtimeClient, err := newRuntimeClient(m)
	if err != nil {
		return err
	}
	if err := setupTopology(ctx, m, clusters, runtimeClient, secretNames); err != nil {
		return err
	}
	if err := setupMachines(ctx, m, clusters, runtimeClient); err != nil {
		return err
	}
	if err := setupAddons(ctx, m, clusters, secretNames); err != nil {
		return err
	}
	conversion.SetAPIVersionGetter(apiVersionGetter(m.GetClient()))
	return setupCoreWebhooks(m, clusters)
}

// newSecretMetadataCache returns a cache with the metadata of all Secrets and nothing else of them, for
// controllers that must notice changes of Secrets which belong to no cluster.
func newSecretMetadataCache(m *manager) (ctrlcache.Cache, error) {
	c, err := ctrlcache.New(m.GetConfig(), ctrlcache.Options{
		Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient(), SyncPeriod: ptr.To(syncPeriod),
		DefaultTransform: func(in any) (any, error) {
			o, ok := in.(*metav1.PartialObjectMetadata)
			if !ok || o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
				return nil, fmt.Errorf("%T must not get into the cache of Secrets' metadata", in)
			}
			return ctrlcache.TransformStripManagedFields()(o)
		},
	})
	if err != nil {
		return nil, err
	}
	return c, m.Add(c)
}

func setupTopology(ctx context.Context, m *manager, clusters clustercache.ClusterCache, rt runtimeclient.Client,
	secretNames ctrlcache.Cache) error {
	c, r, o := m.GetClient(), m.GetAPIReader(), m.controllerOptions()
	if err := (&clusterclass.Reconciler{Client: c, RuntimeClient: rt}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&topologycluster.Reconciler{Client: c, APIReader: r, RuntimeClient: rt,
		ClusterCache: clusters}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&topologymachinedeployment.Reconciler{Client: c, APIReader: r}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&topologymachineset.Reconciler{Client: c, APIReader: r}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	return (&extensionconfig.Reconciler{Client: c, APIReader: r, RuntimeClient: rt,
		PartialSecretCache: secretNames}).SetupWithManager(ctx, m, o)
}

func setupMachines(ctx context.Context, m *manager, clusters clustercache.ClusterCache, rt runtimeclient.Client) error {
	c, r, o := m.GetClient(), m.GetAPIReader(), m.controllerOptions()
	if err := (&cluster.Reconciler{Client: c, APIReader: r, ClusterCache: clusters,
		RemoteConnectionGracePeriod: remoteConnectionGracePeriod}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&machine.Reconciler{Client: c, APIReader: r, ClusterCache: clusters, RuntimeClient: rt,
		RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
		AdditionalSyncMachineLabels: nodelabels.AdditionalSyncMachineLabels()}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&machineset.Reconciler{Client: c, APIReader: r, ClusterCache: clusters,
		PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll)}).SetupWithManager(ctx, m, o); err != nil {
		return err
	}
	if err := (&machinedeployment.Reconciler{Client: c, APIReader: r, RuntimeClient: rt}).SetupWithManager(ctx, m,
		o); err != nil {
		return err
	}
	if err := (&machinepool.Reconciler{Client: c, APIReader: r, ClusterCache: clusters}).SetupWithManager(ctx, m,
		o); err != nil {
		return err
	}
	return (&machinehealthcheck.Reconciler{Client: c, ClusterCache: clusters}).SetupWithManager(ctx, m, o)
}

func setupAddons(ctx context.Context, m *manager, clusters clustercache.ClusterCache,
	secretNames ctrlcache.Cache) error {
	if err := (&clusterresourceset.Reconciler{Client: m.GetClient(), ClusterCache: clusters}).SetupWithManager(ctx, m,
		m.controllerOptions(), secretNames); err != nil {
		return err
	}
	return (&clusterresourcesetbinding.Reconciler{Client: m.GetClient()}).SetupWithManager(ctx, m, m.controllerOptions())
}

func setupCoreWebhooks(m *manager, clusters clustercache.ClusterCache) error {
	c := m.GetClient()
	return m.setupWebhooks(
		&admission.ClusterClass{Client: c},
		&admission.Cluster{Client: c, ClusterCacheReader: clusters},
		&admission.Machine{},
		&admission.MachineSet{},
		&admission.MachineDeployment{},
		&admission.MachineDrainRule{},
		&admission.MachinePool{},
		&admission.MachineHealthCheck{},
		&admission.ClusterResourceSet{},
		&admission.ClusterResourceSetBinding{},
		&admission.ExtensionConfig{},
		&admission.IPAddress{Client: m.GetAPIReader()},
		&admission.IPAddressClaim{},
	)
}

func coreMigrations() map[client.Object]crdmigrator.ByObjectConfig {
	withStatus := crdmigrator.ByObjectConfig{UseStatusForStorageVersionMigration: true}
	plain := crdmigrator.ByObjectConfig{}
	return map[client.Object]crdmigrator.ByObjectConfig{
		&addonsv1.ClusterResourceSet{}:        withStatus,
		&addonsv1.ClusterResourceSetBinding{}: plain,
		&clusterv1.Cluster{}:                  withStatus,
		&clusterv1.ClusterClass{}:             withStatus,
		&clusterv1.Machine{}:                  withStatus,
		&clusterv1.MachineDeployment{}:        withStatus,
		&clusterv1.MachineDrainRule{}:         plain,
		&clusterv1.MachineHealthCheck{}:       withStatus,
		&clusterv1.MachinePool{}:              withStatus,
		&clusterv1.MachineSet{}:               withStatus,
		&ipamv1.IPAddress{}:                   plain,
		&ipamv1.IPAddressClaim{}:              withStatus,
		&runtimev1.ExtensionConfig{}:          withStatus,
	}
}
