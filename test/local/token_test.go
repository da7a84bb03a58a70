package local

import (
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/test/testenv"
)

// maxTokenLife is how long a token may be good with which machines join.
const maxTokenLife = 15 * time.Minute

// Machines join with tokens that live a quarter of an hour at most. One lets its bearer become a node, and nothing else; after its
// end it is refused, and the plane never knew it.
func TestBootstrapTokensEnd(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "tokens", newVersion, options{cluster: func(o *clusterv1.Cluster) {
		o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To[int32](1)
	}})
	c.awaitAvailable(t, createTimeout)
	c.awaitNodes(t, createTimeout, 1, 1, newVersion)
	tokens := c.bootstrapTokens(t)
	if len(tokens) == 0 {
		t.Fatal("there is no token, though a machine has joined")
	}
	for _, s := range tokens {
		end, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
		if life := end.Sub(s.CreationTimestamp.Time); err != nil || life > maxTokenLife+time.Second {
			t.Errorf("token %s (%s) lives %s, %v", s.Data["token-id"], s.Data["description"], life, err)
		}
	}
	s := tokens[len(tokens)-1]
	bearer := c.bearer(t, string(s.Data["token-id"])+"."+string(s.Data["token-secret"]))
	if err := review(t, bearer); err != nil {
		t.Fatalf("a token that is good: %v", err)
	}
	if _, err := bearer.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the bearer of a token lists Secrets: %v", err)
	}
	c.endToken(t, s, bearer)
	plane := rest.AnonymousClientConfig(p.RESTConfig(t))
	plane.BearerToken = string(s.Data["token-id"]) + "." + string(s.Data["token-secret"])
	k, err := kubernetes.NewForConfig(plane)
	if err != nil {
		t.Fatal(err)
	}
	if err := review(t, k); !apierrors.IsUnauthorized(err) {
		t.Errorf("the plane answers %v", err)
	}
}

// bootstrapTokens returns the tokens with which machines can join.
func (c *cluster) bootstrapTokens(t *testing.T) []corev1.Secret {
	t.Helper()
	l, err := c.workload(t).CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// bearer is whoever has the token, in the workload cluster.
func (c *cluster) bearer(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	cfg := rest.AnonymousClientConfig(c.config(t))
	cfg.BearerToken = token
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// endToken moves the end of a token to a few seconds from now; from then on it is refused, again and again.
func (c *cluster) endToken(t *testing.T, s corev1.Secret, bearer kubernetes.Interface) {
	t.Helper()
	end := time.Now().Add(5 * time.Second).UTC().Truncate(time.Second)
	patch := fmt.Sprintf(`{"stringData":{"expiration":%q}}`, end.Format(time.RFC3339))
	if _, err := c.workload(t).CoreV1().Secrets("kube-system").Patch(t.Context(), s.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		err := review(t, bearer)
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return fmt.Errorf("the token is still good: %w", err)
	})
	if late := time.Since(end); late < 0 || late > 10*time.Second {
		t.Errorf("the token was refused %s after its end", late)
	}
	for range 5 {
		if err := review(t, bearer); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token after its end: %v", err)
		}
	}
}

// review asks an API server who it thinks we are.
func review(t *testing.T, k kubernetes.Interface) error {
	t.Helper()
	_, err := k.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}
