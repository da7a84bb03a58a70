package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// requestKubeconfig has the plane sign a key that is made here.
func (r *kubeconfigOptions) requestKubeconfig(c *cobra.Command, a *connect.Access) (*issuedKubeconfig, error) {
	key, csr, err := certificate.NewKeyAndRequest("polder") // the plane says whose it is
	if err != nil {
		return nil, err
	}
	q := &v1alpha1.KubeconfigRequest{}
	q.APIVersion, q.Kind = v1alpha1.GroupVersion.String(), "KubeconfigRequest"
	q.GenerateName, q.Namespace = r.cluster+"-", a.Namespace
	q.Spec = v1alpha1.KubeconfigRequestSpec{ClusterName: r.cluster, Role: v1alpha1.Role(r.role),
		ExpirationSeconds: int32(r.validity / time.Second), CertificateRequest: csr} //nolint:gosec // at most eight hours
	u, err := objects.ToUnstructured(q)
	if err != nil {
		return nil, err
	}
	requests := a.Client.Resource(requestResource).Namespace(a.Namespace)
	ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
	defer cancel()
	doing := fmt.Sprintf("asking for access to cluster %q", r.cluster)
	made, err := requests.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, preferNotFound(c.Context(), a, r.cluster, a.Explain(doing, err))
	}
	defer func() {
		// Whatever happens, nobody needs the request any more; the plane deletes what is left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 5*time.Second)
		defer cancel()
		_ = requests.Delete(ctx, made.GetName(), metav1.DeleteOptions{})
	}()
	w := &signatureWaiter{}
	f := &follow.Follower{
		Source: follow.PlaneSource{Objects: requests, Name: made.GetName()}, Observer: w, Now: a.Globals.Now,
		KnownKeys: map[string]bool{follow.ObjectKey(made): true},
	}
	err = f.Run(ctx)
	switch {
	case w.err != nil:
		return nil, w.err
	case c.Context().Err() != nil:
		return nil, exit.Errorf(exit.Interrupted, "%s was interrupted", doing)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, exit.Errorf(exit.Timeout,
			"the plane has not signed a certificate for cluster %q within %s%s; see how the cluster is with: %s", r.cluster,
			r.timeout, w.describePending(), a.Hint("describe "+r.cluster))
	case err != nil:
		return nil, a.Explain(doing, err)
	}
	s := w.last.Status
	if _, err := tls.X509KeyPair([]byte(s.Certificate), key); err != nil {
		return nil, fmt.Errorf("the plane signed something else than what it was asked for (%w); try again", err)
	}
	k := newIssuedKubeconfig(a.Namespace, r.cluster, v1alpha1.Role(r.role),
		&clientcmdapi.Cluster{Server: s.Endpoint, CertificateAuthorityData: []byte(s.CertificateAuthority)},
		&clientcmdapi.AuthInfo{ClientCertificateData: []byte(s.Certificate), ClientKeyData: key})
	if s.ExpirationTime != nil {
		k.expiresAt = s.ExpirationTime.Time
	}
	return k, nil
}

// signatureWaiter waits for that of the plane.
type signatureWaiter struct {
	last v1alpha1.KubeconfigRequest
	err  error
}

var _ follow.Observer = (*signatureWaiter)(nil)

// OnObject goes on where the plane may still grant access, and ends where waiting changes nothing.
func (s *signatureWaiter) OnObject(u *unstructured.Unstructured) (done bool) {
	q, err := objects.FromUnstructured[v1alpha1.KubeconfigRequest](u)
	if err != nil {
		s.err = err
		return true
	}
	s.last = *q
	ready := apimeta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return false
	case ready.Status == metav1.ConditionTrue:
		if q.Status.Certificate == "" || q.Status.Endpoint == "" {
			s.err = fmt.Errorf(
				"the plane says that access is granted, but gives no certificate or address; its polderd may be older than this polder",
			)
		}
		return true
	case apimeta.IsStatusConditionTrue(q.Status.Conditions, v1alpha1.ConditionStalled) ||
		ready.Reason == v1alpha1.ReasonClusterMissing || ready.Reason == v1alpha1.ReasonRequestInvalid ||
		ready.Reason == v1alpha1.ReasonExpired:
		// waiting changes nothing
		s.err = exit.Errorf(exit.Failure, "the plane grants no access: %s", output.Sanitize(ready.Message))
	}
	return s.err != nil
}

// OnDelete ends: the private key belongs to that request, and no other will be signed for it.
func (s *signatureWaiter) OnDelete(string) (done bool) {
	s.err = errors.New("somebody deleted the request for access before it was granted; try again")
	return true
}

// OnError is silent: the follower tries again, and the time is bounded.
func (s *signatureWaiter) OnError(error) {}

// describePending is what the plane waits for, if it has said so.
func (s *signatureWaiter) describePending() string {
	if c := apimeta.FindStatusCondition(s.last.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Message != "" {
		return ": " + output.Sanitize(c.Message)
	}
	return ""
}
