package instant

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/instant/world"
)

// bootstrapSuffix is that of the Secret with the bootstrap data of all machines of a cluster; none of them needs any.
const bootstrapSuffix = "-bootstrap"

// valueKey is where Cluster API's Secrets have what they are for.
const valueKey = "value"

// ensureAuthority returns the cluster's CA, which is made once and kept in a Secret.
func (r *clusterReconciler) ensureAuthority(ctx context.Context, s *scope) (*world.Authority, error) {
	have := &corev1.Secret{}
	err := r.apiReader.Get(ctx, types.NamespacedName{Namespace: s.cluster.Namespace, Name: s.cluster.Name + "-ca"}, have)
	if err == nil {
		return world.ReadAuthority(have.Data[corev1.TLSCertKey], have.Data[corev1.TLSPrivateKeyKey])
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the authority of cluster %s: %w", s.cluster.Name, err)
	}
	ca, err := world.NewAuthority(s.cluster.Name)
	if err != nil {
		return nil, err
	}
	return ca, r.client.Create(ctx, s.newSecret("-ca", map[string][]byte{corev1.TLSCertKey: ca.Certificate, corev1.TLSPrivateKeyKey: ca.Key}))
}

// ensureKubeconfig writes the cluster's kubeconfig into a Secret, once.
func (r *clusterReconciler) ensureKubeconfig(ctx context.Context, s *scope, ca *world.Authority, at netip.AddrPort) error {
	have := s.newSecret("-kubeconfig", nil)
	if err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(have), have); !apierrors.IsNotFound(err) {
		return err
	}
	certificate, key, err := ca.IssueClientCertificate("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	name := s.cluster.Name
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + at.String(), CertificateAuthorityData: ca.Certificate}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	file, err := clientcmd.Write(*c)
	if err != nil {
		return errors.New("the kubeconfig cannot be written") // the reason could quote the key
	}
	return client.IgnoreAlreadyExists(r.client.Create(ctx, s.newSecret("-kubeconfig", map[string][]byte{valueKey: file})))
}

// ensureBootstrapData writes the Secret with the bootstrap data of all machines, once.
func (r *clusterReconciler) ensureBootstrapData(ctx context.Context, s *scope) error {
	return client.IgnoreAlreadyExists(r.client.Create(ctx, s.newSecret(bootstrapSuffix, map[string][]byte{valueKey: []byte("#cloud-config\n")})))
}

// newSecret is a Secret of the cluster; its owner reference lets it go with the infrastructure.
func (s *scope) newSecret(suffix string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.cluster.Namespace, Name: s.cluster.Name + suffix, Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.object, clusterKind.gvk())},
		},
		Type: clusterv1.ClusterSecretType, Data: data,
	}
}
