package rest

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
)

var requestResource = v1alpha1.GroupVersion.WithResource("kubeconfigrequests")

// signatureTimeout is how long the plane may take to sign a certificate.
const signatureTimeout = 20 * time.Second

// KubeconfigRequest asks for access to a cluster.
type KubeconfigRequest struct {
	Role               string `json:"role,omitempty" enum:"admin,viewer" default:"viewer" doc:"What the holder may do in the cluster."`
	ExpirationSeconds  int32  `json:"expirationSeconds,omitempty" minimum:"600" maximum:"28800" default:"28800" doc:"How long it is valid: from ten minutes to eight hours."`
	CertificateRequest string `json:"certificateRequest,omitempty" maxLength:"16384" doc:"A certificate signing request in PEM form, for a key that only you have. Without it a key is made for you, which is kept nowhere."`
}

// Kubeconfig is access to a cluster.
type Kubeconfig struct {
	Kubeconfig           string    `json:"kubeconfig" doc:"A kubeconfig file, as YAML. If you sent a certificateRequest, it has no key in it."`
	Certificate          string    `json:"certificate" doc:"The client's certificate, in PEM form."`
	CertificateAuthority string    `json:"certificateAuthority" doc:"The authority of the cluster's API, in PEM form."`
	Endpoint             string    `json:"endpoint" doc:"The URL of the cluster's API."`
	ExpirationTime       time.Time `json:"expirationTime" doc:"When it ends."`
}

func registerKubeconfigs(a *API) error {
	op := operation("create-kubeconfig", http.MethodPost, clusterPathPattern+"/kubeconfig", tagClusters,
		"Get access to a cluster for some hours", http.StatusConflict, http.StatusUnprocessableEntity)
	op.DefaultStatus = http.StatusCreated
	huma.Register(a.huma, op, a.createKubeconfig)
	return nil
}

func (a *API) createKubeconfig(ctx context.Context, in *struct {
	ClusterPath
	Body KubeconfigRequest
}) (*struct{ Body Kubeconfig }, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	u, err := a.readCluster(ctx, in.Tenant, in.Cluster)
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	var key []byte
	if in.Body.CertificateRequest == "" {
		if key, in.Body.CertificateRequest, err = certificate.NewKeyAndRequest("polder"); err != nil {
			return nil, err
		}
	}
	if endpoint, _, _ := unstructured.NestedString(u.Object, "status", "endpoint"); endpoint == "" {
		// Whoever may not have it at all is told so, and does not wait for it.
		if _, err := a.request(ctx, in.Tenant, namespace, in.Cluster, in.Body, metav1.DryRunAll); err != nil {
			return nil, err
		}
		message, _, _ := unstructured.NestedString(u.Object, "status", "message")
		return nil, problemf(http.StatusConflict, "cluster %s has no API yet: %s", in.Cluster,
			cmp.Or(message, "it is being made"))
	}
	signed, err := a.sign(ctx, in.Tenant, namespace, in.Cluster, in.Body)
	if err != nil {
		return nil, err
	}
	s := signed.Status
	if s.Certificate == "" || s.Endpoint == "" || s.ExpirationTime == nil {
		return nil, newProblem(http.StatusBadGateway, "the plane says that access is granted, but gives no certificate; try again")
	}
	if _, err := tls.X509KeyPair([]byte(s.Certificate), key); key != nil && err != nil {
		return nil, newProblem(http.StatusBadGateway, "the plane signed something else than what it was asked for; try again")
	}
	file, err := writeKubeconfig(in.Tenant, in.Cluster, in.Body.Role, &s, key)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Kubeconfig }{Kubeconfig{
		Kubeconfig: string(file), Certificate: s.Certificate, CertificateAuthority: s.CertificateAuthority,
		Endpoint: s.Endpoint, ExpirationTime: s.ExpirationTime.UTC(),
	}}, nil
}

// request asks the plane for access with the rights of the caller.
func (a *API) request(ctx context.Context, tenant, namespace, cluster string, in KubeconfigRequest,
	dryRun ...string) (*unstructured.Unstructured, error) {
	made, err := writeCounted(ctx, func() (*unstructured.Unstructured, error) {
		return a.client.Resource(requestResource).Namespace(namespace).Create(ctx,
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "KubeconfigRequest",
				"metadata": map[string]any{"generateName": cluster + "-", "namespace": namespace},
				"spec": map[string]any{
					"clusterName": cluster, "role": in.Role, "expirationSeconds": int64(in.ExpirationSeconds),
					"certificateRequest": in.CertificateRequest,
				},
			}}, metav1.CreateOptions{
				FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
			})
	})
	if err != nil {
		return nil, a.explainIn(ctx, tenant, err)
	}
	return made, nil
}

// sign has the plane sign a certificate request, with the rights of the caller, and leaves nothing behind.
func (a *API) sign(ctx context.Context, tenant, namespace, cluster string,
	in KubeconfigRequest) (*v1alpha1.KubeconfigRequest, error) {
	requests := a.client.Resource(requestResource).Namespace(namespace)
	made, err := a.request(ctx, tenant, namespace, cluster, in)
	if err != nil {
		return nil, err
	}
	defer func() {
		// Nobody needs the request any more; the plane deletes what is left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), planeTimeout)
		defer cancel()
		_ = requests.Delete(ctx, made.GetName(), metav1.DeleteOptions{})
	}()
	q := &v1alpha1.KubeconfigRequest{}
	waiting := ""
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, signatureTimeout, true,
		func(ctx context.Context) (bool, error) {
			u, err := requests.Get(ctx, made.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, q); err != nil {
				return false, err
			}
			ready := apimeta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionReady)
			switch {
			case ready == nil:
				return false, nil
			case ready.Status == metav1.ConditionTrue:
				return true, nil
			case isFinal(q, ready):
				return false, problemf(http.StatusConflict, "the plane grants no access: %s", ready.Message)
			}
			waiting = ": " + ready.Message
			return false, nil
		})
	if wait.Interrupted(err) {
		return nil, problemf(http.StatusConflict, "cluster %s gives no access yet%s; try again", cluster, waiting)
	}
	return q, explain(err)
}

// isFinal says that waiting changes nothing.
func isFinal(q *v1alpha1.KubeconfigRequest, ready *metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(q.Status.Conditions, v1alpha1.ConditionStalled) ||
		ready.Reason == v1alpha1.ReasonClusterMissing || ready.Reason == v1alpha1.ReasonRequestInvalid ||
		ready.Reason == v1alpha1.ReasonExpired
}

// writeKubeconfig makes the file. Its names are those of polder kubeconfig.
func writeKubeconfig(tenant, cluster, role string, s *v1alpha1.KubeconfigRequestStatus, key []byte) ([]byte, error) {
	k := clientcmdapi.NewConfig()
	entry, suffix := "polder-"+tenant+"-"+cluster, ""
	if v1alpha1.Role(role) == v1alpha1.RoleViewer {
		suffix = "-viewer"
	}
	k.Clusters[entry] = &clientcmdapi.Cluster{Server: s.Endpoint, CertificateAuthorityData: []byte(s.CertificateAuthority)}
	k.AuthInfos[entry+suffix] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte(s.Certificate), ClientKeyData: key}
	k.Contexts[cluster+suffix] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry + suffix}
	k.CurrentContext = cluster + suffix
	return clientcmd.Write(*k)
}
