package kubeconfigrequest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

const (
	space     = "team"
	name      = "prod"
	requester = "alice@example.org"
)

// at is the time of all tests. It has a fraction, as real times have.
var at = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), clusterv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// newKey makes a key with its PEM form.
func newKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return k, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// newPair makes an authority's certificate and key in PEM form. change may make it invalid.
func newPair(t *testing.T, change func(*x509.Certificate)) (certificate, key []byte) {
	t.Helper()
	k, key := newKey(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: at.Add(-time.Hour), NotAfter: at.Add(240 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

func newAuthority(t *testing.T, change func(*x509.Certificate)) *authority {
	t.Helper()
	a, err := parseAuthority(newPair(t, change))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newCredentialSpec(t *testing.T) *credentialSpec {
	t.Helper()
	return &credentialSpec{
		cluster: name, endpoint: "https://192.0.2.1:6443", role: v1alpha1.RoleAdmin, username: requester,
		lifetime: time.Hour, now: at, authority: newAuthority(t, nil),
	}
}

// newCSR makes a signing request for a key. change may make it ask for more.
func newCSR(t *testing.T, key crypto.Signer, change func(*x509.CertificateRequest)) string {
	t.Helper()
	r := &x509.CertificateRequest{}
	if change != nil {
		change(r)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: csrPEMType, Bytes: der}))
}

func newRequest(change ...func(*v1alpha1.KubeconfigRequest)) *v1alpha1.KubeconfigRequest {
	o := &v1alpha1.KubeconfigRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "mine", UID: "request", Generation: 1, CreationTimestamp: metav1.NewTime(at.Truncate(time.Second))},
		Spec:       v1alpha1.KubeconfigRequestSpec{ClusterName: name, Role: v1alpha1.RoleAdmin, ExpirationSeconds: 3600, Username: requester},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func newWorkloadCluster() *v1alpha1.WorkloadCluster {
	return &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: "owner"}}
}

func newCluster(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: space, Name: name, UID: "cluster",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkloadCluster", Name: name, UID: "owner", Controller: ptr.To(true)},
		},
	}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for _, f := range change {
		f(c)
	}
	return c
}

// newSecrets makes the Secrets of Cluster API: the authority, and a kubeconfig that trusts it.
func newSecrets(t *testing.T, certificate, key []byte) (ca, own *corev1.Secret) {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443", CertificateAuthorityData: certificate}
	c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "token"}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	c.CurrentContext = name
	file, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(suffix string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name + suffix}, Type: clusterv1.ClusterSecretType, Data: data}
	}
	return secret(authoritySuffix, map[string][]byte{"tls.crt": certificate, "tls.key": key}), secret(kubeconfigSuffix, map[string][]byte{"value": file})
}

// note is a recorded event.
type note struct{ About, Related, Type, Reason, Text string }

// recorder keeps events.
type recorder struct{ notes []note }

func (r *recorder) Eventf(about, related runtime.Object, kind, reason, _, text string, args ...any) {
	called := func(o runtime.Object) string { return o.(metav1.Object).GetName() }
	r.notes = append(r.notes, note{called(about), called(related), kind, reason, fmt.Sprintf(text, args...)})
}
