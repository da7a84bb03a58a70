package capi

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/workload"
)

// kubeconfigSecrets reads Secrets for Cluster API's connections to workload clusters. Whoever may write Secrets chooses
// the kubeconfig of a cluster. Cluster API refuses one that runs programs, but takes one that names files, and sends
// what is in them, of the plane's own, to a server of its writer's choice. Such a kubeconfig is refused here, as our
// own controllers do.
type kubeconfigSecrets struct{ client.Client }

// Get reads an object, and checks it if it is the kubeconfig of a cluster.
func (k kubeconfigSecrets) Get(
	ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption,
) error {
	if err := k.Client.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	s, ok := o.(*corev1.Secret)
	if !ok || !strings.HasSuffix(key.Name, "-"+string(secret.Kubeconfig)) {
		return nil
	}
	if _, err := workload.RESTConfigFromKubeconfig(s.Data[secret.KubeconfigDataName]); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return nil
}
