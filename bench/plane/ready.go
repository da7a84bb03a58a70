package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// namespace is where everything the benchmark makes is kept.
const namespace = corev1.NamespaceDefault

// access is an administrator's access to one side. The client sends only the requests it is told to, so that no
// discovery hides in the times.
type access struct {
	config *rest.Config
	client dynamic.Interface
}

func newAccess(kubeconfig string) (access, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return access{}, err
	}
	c.QPS, c.UserAgent = -1, "polder-bench"
	d, err := dynamic.NewForConfig(c)
	return access{config: c, client: d}, err
}

// get reads a path that is no object.
func (a access) get(ctx context.Context, path string) ([]byte, error) {
	d, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		return nil, err
	}
	return d.RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

// serves says whether the API server itself is ready.
func (a access) serves(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

// lists says whether the kinds that managers look for when they start are served.
func (a access) lists(ctx context.Context) error {
	for path, kind := range map[string]string{
		"/apis/" + clusterv1.GroupVersion.String():    "MachineSet",
		"/apis/bootstrap.cluster.x-k8s.io/v1beta2":    "KubeadmConfig",
		"/apis/controlplane.cluster.x-k8s.io/v1beta2": "KubeadmControlPlane",
	} {
		b, err := a.get(ctx, path)
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(`"`+kind+`"`)) {
			return fmt.Errorf("%s has no %s yet", path, kind)
		}
	}
	return nil
}

const probeName = "bench-probe"

// ready says whether a side is ready: it admits machines and reconciles clusters.
func (a access) ready(ctx context.Context) error {
	if err := a.admits(ctx); err != nil {
		return err
	}
	return a.works(ctx)
}

// works says whether a new cluster is reconciled: Cluster API's controller has put its finalizer on it.
func (a access) works(ctx context.Context) error {
	c := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(),
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": probeName},
		"spec": map[string]any{
			"controlPlaneRef": map[string]any{
				"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": probeName,
			},
		},
	}}
	of := a.client.Resource(clusters).Namespace(namespace)
	if _, err := of.Create(ctx, c, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	c, err := of.Get(ctx, probeName, metav1.GetOptions{})
	if err == nil && len(c.GetFinalizers()) == 0 {
		err = errors.New("nobody has taken up a new cluster")
	}
	return err
}

// deleteProbe deletes the cluster that works has made. It ends when the cluster is gone: one that is still being
// deleted when polderd stops would be there, with its finalizer, at the next start, and look like one taken up.
func (p *processes) deleteProbe(ctx context.Context, a access) error {
	of := a.client.Resource(clusters).Namespace(namespace)
	if err := of.Delete(ctx, probeName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return p.await(ctx, "the end of the probe", soon, func(ctx context.Context) error {
		_, err := of.Get(ctx, probeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
}

// admits says whether admission works: a machine that is created as a dry run
// comes back with the label that only Cluster API's webhook adds, so that etcd, API server,
// the CRD and the manager behind the webhook all work.
func (a access) admits(ctx context.Context) error {
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(),
		"kind":       "Machine",
		"metadata":   map[string]any{"name": probeName},
		"spec": map[string]any{
			"clusterName":       probeName,
			"bootstrap":         map[string]any{"dataSecretName": probeName},
			"infrastructureRef": map[string]any{"apiGroup": stubGroup, "kind": "StubMachine", "name": probeName},
		},
	}}
	m, err := a.client.Resource(machines).Namespace(namespace).Create(ctx, m, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		return err
	}
	if m.GetLabels()[clusterv1.ClusterNameLabel] != probeName {
		return errors.New("machines are admitted without Cluster API's webhook")
	}
	return nil
}
