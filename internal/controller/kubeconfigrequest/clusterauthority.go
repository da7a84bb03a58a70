package kubeconfigrequest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/workload"
)

// Suffixes of the Secrets that Cluster API keeps for a cluster.
const (
	authoritySuffix  = "-ca"
	kubeconfigSuffix = "-kubeconfig"
)

// kubeconfigKey is the key of a kubeconfig in Secrets, both in Cluster API's and in ours.
const kubeconfigKey = "value"

// loadAuthority reads the cluster's authority as it is now, and prepares the credentials.
func (r *Reconciler) loadAuthority(ctx context.Context, s *scope) error {
	if err := r.checkCacheCurrent(ctx, s.request); err != nil {
		return err
	}
	ca, err := r.readSecret(ctx, s.cluster.Namespace, s.cluster.Name+authoritySuffix)
	if err != nil {
		return err
	}
	own, err := r.readSecret(ctx, s.cluster.Namespace, s.cluster.Name+kubeconfigSuffix)
	if err != nil {
		return err
	}
	a, blocked := authorityFromSecrets(s.cluster.Name, ca, own, s.now)
	if err := s.stopIfBlocked(blocked); err != nil {
		return err
	}
	s.credentials = &credentialSpec{
		cluster: s.cluster.Name, endpoint: endpointOf(s.cluster), role: s.request.Spec.Role,
		username: s.request.Spec.Username,
		lifetime: time.Duration(s.request.Spec.ExpirationSeconds) * time.Second, now: s.now, authority: a,
	}
	return nil
}

// checkCacheCurrent makes sure that the cache is not behind: the request may have been answered already, and a second
// certificate would be signed for nothing.
func (r *Reconciler) checkCacheCurrent(ctx context.Context, o *v1alpha1.KubeconfigRequest) error {
	live := &v1alpha1.KubeconfigRequest{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierror.IgnoreObjectNotFound(err, "kubeconfigrequests", o.Name) != nil {
		return fmt.Errorf("reading the request again: %w", err)
	}
	if err != nil || live.UID != o.UID || live.ResourceVersion != o.ResourceVersion {
		return reconcile.Wait(cacheLagDelay, "the cache")
	}
	return nil
}

// readSecret reads a Secret; nil if there is none. It is read live: the operator may not list Secrets, which a cache
// would have to.
func (r *Reconciler) readSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	if apierror.IsObjectNotFound(err, "secrets", name) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return s, nil
}

// authorityFromSecrets makes an authority from Cluster API's Secrets of a cluster, or says why there is none that the
// cluster trusts. The message quotes nothing of them.
func authorityFromSecrets(cluster string, ca, own *corev1.Secret, now time.Time) (*authority, *obstacle) {
	block := func(format string, args ...any) (*authority, *obstacle) {
		return nil, newObstacle(v1alpha1.ReasonClusterNotReady, pollDelay, format, args...)
	}
	if ca == nil || own == nil {
		return block("Secrets %s and %s of cluster %s are not both there yet; Cluster API makes them",
			cluster+authoritySuffix, cluster+kubeconfigSuffix, cluster)
	}
	a, err := parseAuthority(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err == nil {
		err = a.checkCanSign(now)
	}
	if err != nil {
		return block("Secret %s cannot be used: %v", ca.Name, err)
	}
	cfg, err := workload.RESTConfigFromKubeconfig(own.Data[kubeconfigKey])
	if err != nil {
		return block("Secret %s cannot be used: %v", own.Name, err)
	}
	// Cluster API's own kubeconfig shows which authority the cluster has. It would refuse a certificate of another.
	if !a.isInBundle(cfg.CAData) {
		return block("Secret %s does not trust the authority in Secret %s; one of them was replaced, and must be restored",
			own.Name, ca.Name)
	}
	return a, nil
}
