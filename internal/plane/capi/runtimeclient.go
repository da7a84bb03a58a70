package capi

import (
	"context"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/polder-kaas/polder/internal/plane/runtimehooks"
)

// tolerantRuntimeClient keeps one unreachable or wrong extension from ending the whole plane. Cluster API calls
// every extension at its start and gives up after a minute if one does not answer; here that would take
// everybody's API down. Instead the start goes on with the handlers the extension had when it last answered,
// whose failure policy then says what its absence means, and the reconciler of ExtensionConfigs reports and
// retries as it does at any other time.
type tolerantRuntimeClient struct{ *runtimehooks.Client }

var _ runtimeclient.Client = tolerantRuntimeClient{}

func newRuntimeClient(m *manager) (tolerantRuntimeClient, error) {
	c, err := runtimehooks.New(runtimehooks.Config{Reader: m.GetClient()})
	if err != nil {
		return tolerantRuntimeClient{}, err
	}
	for _, h := range m.runtimeHooks {
		if err := c.Handle(h); err != nil {
			return tolerantRuntimeClient{}, err
		}
	}
	return tolerantRuntimeClient{c}, nil
}

// Discover ignores an error only during the start.
func (p tolerantRuntimeClient) Discover(ctx context.Context,
	config *runtimev1.ExtensionConfig) (*runtimev1.ExtensionConfig, error) {
	found, err := p.Client.Discover(ctx, config)
	if err == nil || p.IsReady() {
		return found, err
	}
	ctrl.LoggerFrom(ctx).Error(err, "Starting with what this extension offered last")
	return config.DeepCopy(), nil
}

// WarmUp leaves out ExtensionConfigs that cannot be registered, so that the rest can be.
func (p tolerantRuntimeClient) WarmUp(list *runtimev1.ExtensionConfigList) error {
	err := p.Client.WarmUp(list)
	if err == nil || p.IsReady() {
		return err
	}
	// Register works only after a WarmUp, so the client is warmed up without any.
	if err := p.Client.WarmUp(&runtimev1.ExtensionConfigList{}); err != nil {
		return err
	}
	for i := range list.Items {
		if err := p.Register(&list.Items[i]); err != nil {
			ctrl.Log.Error(err, "Starting without this extension", "ExtensionConfig", list.Items[i].Name)
		}
	}
	return nil
}
