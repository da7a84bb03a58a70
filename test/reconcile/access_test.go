package reconcile

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/kubeconfigrequest"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
	ownworkload "github.com/polder-kaas/polder/internal/workload"
)

// Requests for access. The plane itself plays the workload cluster, and a CA of the test that of the cluster.
func TestKubeconfigRequest(t *testing.T) {
	t.Parallel()
	g := newGrantor(t)
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: func(_ context.Context, mgr ctrl.Manager) error {
			live, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
			if err != nil {
				return err
			}
			clusters := &ownworkload.Clusters{Secrets: live, UserAgent: "polder-operator", WrapTransport: mgr.GetConfig().WrapTransport}
			r := &kubeconfigrequest.Reconciler{
				Client: mgr.GetClient(), Live: live, Workload: clusters, Limiter: &fairness.Limiter{PerNamespace: 4}, Clock: clock.RealClock{},
				Events: mgr.GetEventRecorder("polder-operator"),
			}
			return r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2})
		},
		Kinds:        []client.Object{&v1alpha1.KubeconfigRequest{}},
		User:         operator.User,
		CreateInputs: g.given,
		Normalize:    normalizeRequest,
		CheckDeleted: g.gone,
		Timeout:      patience,
		BadInputs: []reconciletest.Fault{{
			Name: "an authority that is another's", Timing: reconciletest.FromStart,
			Break:         g.authority("other"),
			CheckReported: reconciletest.ExpectReason(&v1alpha1.KubeconfigRequest{}, "mine", v1alpha1.ConditionReady, v1alpha1.ReasonClusterNotReady),
			Repair:        g.authority("own"),
		}},
	})
}

// grantor has the CAs of clusters.
type grantor struct {
	certificates, keys map[string][]byte
	kubeconfig         []byte
	endpoint           clusterv1.APIEndpoint
}

func newGrantor(t *testing.T) *grantor {
	t.Helper()
	g := &grantor{certificates: map[string][]byte{}, keys: map[string][]byte{}}
	for _, name := range []string{"own", "other"} {
		g.certificates[name], g.keys[name] = newAuthority(t, name)
	}
	k, err := clientcmd.Load(ownKubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	c := k.Clusters["c"]
	c.CertificateAuthorityData = bytes.Join([][]byte{c.CertificateAuthorityData, g.certificates["own"]}, []byte("\n"))
	if g.kubeconfig, err = clientcmd.Write(*k); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(c.Server)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	g.endpoint = clusterv1.APIEndpoint{Host: u.Hostname(), Port: int32(port)}
	return g
}

func newAuthority(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// given makes a cluster that seems to run, and a request.
func (g *grantor) given(ctx context.Context, c client.Client, ns string) error {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	o.Spec.Provider, o.Spec.Stack = "nobody", v1alpha1.StackReference{Name: "none"}
	if err := c.Create(ctx, o); err != nil {
		return err
	}
	for name, data := range map[string]map[string][]byte{
		"one-ca":         {corev1.TLSCertKey: g.certificates["own"], corev1.TLSPrivateKeyKey: g.keys["own"]},
		"one-kubeconfig": {"value": g.kubeconfig},
	} {
		if err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}); err != nil {
			return err
		}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	cluster.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind("WorkloadCluster"))}
	cluster.Spec.ControlPlaneEndpoint = g.endpoint
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalCluster", Name: "none"}
	if err := c.Create(ctx, cluster); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	r := &v1alpha1.KubeconfigRequest{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}}
	r.Spec = v1alpha1.KubeconfigRequestSpec{ClusterName: "one", Role: v1alpha1.RoleViewer, ExpirationSeconds: 3600, Username: "alice"}
	return errors.Join(c.Status().Patch(ctx, cluster, client.MergeFrom(before)), c.Create(ctx, r))
}

// authority gives the cluster another CA.
func (g *grantor) authority(name string) reconciletest.Action {
	return func(ctx context.Context, c client.Client, ns string) error {
		data := map[string]any{corev1.TLSCertKey: g.certificates[name], corev1.TLSPrivateKeyKey: g.keys[name]}
		return patch(ctx, c, &corev1.Secret{}, ns, "one-ca", map[string]any{"data": data})
	}
}

// gone waits until nobody has access any more.
func (g *grantor) gone(ctx context.Context, c client.Client, ns string) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "mine-access"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Secret is still there: %w", err)
	}
	return nil
}

// normalizeRequest leaves out when the certificate expires, also in messages.
func normalizeRequest(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "status", "expirationTime")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		delete(c.(map[string]any), "message")
	}
	if conditions != nil {
		_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions") // as it was read
	}
}
