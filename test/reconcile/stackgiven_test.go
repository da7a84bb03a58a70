package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// minimalPoll is how soon something settled may be requeued: the interval of a source, by default.
const minimalPoll = 4 * time.Minute

// brokenKubeconfig has an authority that is none. Admission refuses those that would do harm.
const brokenKubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: eA==}}]
users: [{name: u, user: {token: t}}]
`

// ownKubeconfig is access to the plane itself, as Cluster API would store it.
func ownKubeconfig(t *testing.T) []byte {
	t.Helper()
	cfg := shared.Get(t).RESTConfig(t)
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	b, err := clientcmd.Write(*k)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// givenCluster makes a stack and, once its class is there, a Cluster whose control plane seems to run.
func givenCluster(ctx context.Context, c client.Client, ns string, kubeconfig []byte) error {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scs"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.37", Versions: []string{"v1"}}
	if err := c.Create(ctx, s); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tiny-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig}}
	if err := c.Create(ctx, secret); err != nil {
		return err
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tiny"}}
	cluster.Spec.Topology.ClassRef.Name, cluster.Spec.Topology.Version = "local-scs-1-37-v1", "v1.37.1"
	cluster.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1)
	if err := c.Create(ctx, cluster); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	return c.Status().Patch(ctx, cluster, client.MergeFrom(before))
}

// deleteTiny deletes the Cluster and its stack.
func deleteTiny(ctx context.Context, c client.Client, ns string) error {
	for _, o := range []client.Object{&clusterv1.Cluster{}, &csv1.ClusterStack{}} {
		if err := c.DeleteAllOf(ctx, o, client.InNamespace(ns)); err != nil {
			return err
		}
	}
	return nil
}

// goneTiny waits for the Cluster to be gone, then removes what would have gone with a real one.
func goneTiny(ctx context.Context, c client.Client, ns string) error {
	var clusters clusterv1.ClusterList
	if err := c.List(ctx, &clusters, client.InNamespace(ns)); err != nil || len(clusters.Items) > 0 {
		return fmt.Errorf("there are %d clusters: %w", len(clusters.Items), err)
	}
	for _, o := range []client.Object{&corev1.ConfigMap{}, &rbacv1.Role{}} {
		if err := c.DeleteAllOf(ctx, o, client.InNamespace(ns)); err != nil {
			return err
		}
	}
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, s := range secrets.Items {
		if strings.HasPrefix(s.Name, csv1.AddonPrefix) {
			return fmt.Errorf("secret %s is left", s.Name)
		}
	}
	return nil
}

// settledAddons waits for the add-ons of the cluster.
func settledAddons(ctx context.Context, c client.Client, ns string) error {
	a := &csv1.ClusterAddon{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: csv1.AddonPrefix + "tiny"}, a); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(a.Status.Conditions, csv1.ConditionReady) {
		return fmt.Errorf("the add-ons are not ready: %v", a.Status.Conditions)
	}
	for _, o := range []client.Object{&corev1.ConfigMap{}, &rbacv1.Role{}} {
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "tiny"}, o); err != nil {
			return err
		}
	}
	// Cluster API writes to the Cluster too, and each write reconciles the add-ons.
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "tiny"}, cluster); err != nil {
		return err
	}
	if cluster.Spec.ControlPlaneRef.Name == "" || cluster.Spec.InfrastructureRef.Name == "" || a.Status.ClusterGeneration != cluster.Generation {
		return fmt.Errorf("the add-ons are for generation %d of the Cluster, which has %d", a.Status.ClusterGeneration, cluster.Generation)
	}
	return nil
}
