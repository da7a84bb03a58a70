package boot

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/markcontrolplane"
)

// Limits of waiting; the host starts another attempt after them.
const (
	controlPlaneTimeout = 3 * time.Minute
	nodeTimeout         = 2 * time.Minute
	pollInterval        = 100 * time.Millisecond
)

// waitForControlPlane waits for the machine's own API server, not for one behind the endpoint.
func waitForControlPlane(ctx context.Context, m *machine) error {
	file := m.dir.RootFS(constants.KubernetesDir, constants.KubeletKubeConfigFileName)
	if err := m.checkKubeconfig(file); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return err
	}
	cfg.Host = fmt.Sprintf("https://%s:%d", m.address, m.kubeadm.config.LocalAPIEndpoint.BindPort)
	cfg.Timeout = 5 * time.Second
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, controlPlaneTimeout, true,
		func(ctx context.Context) (bool, error) {
			_, last = c.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return last == nil, nil
		})
	if err != nil {
		return fmt.Errorf("the machine's API server did not become ready: %w", cmp.Or(last, err))
	}
	return nil
}

// markControlPlane waits until the host has registered the node, then gives it the labels and
// taints of a control plane.
func markControlPlane(ctx context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, nodeTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().Nodes().Get(ctx, m.Node, metav1.GetOptions{})
		// Rights do not come by waiting.
		if apierrors.IsForbidden(err) {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for node %s: %w", m.Node, err)
	}
	r := m.kubeadm.config.NodeRegistration
	return markcontrolplane.MarkControlPlane(c, m.Node, r.Taints)
}
