package clusteraddon

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/version"
)

// retryDelay is how long to wait for what other controllers are about to do.
const retryDelay = 2 * time.Second

// endRun ends a run without an error: there is nothing to do.
func endRun() error { return reconcile.Wait(0, "nothing") }

// findRelease finds the release of the cluster's class, or the one it is to be at once its add-ons are applied. Other
// clusters are left alone.
func (r *Reconciler) findRelease(ctx context.Context, s *scope) error {
	rel, err := preparedRelease(ctx, r.Client, s.cluster)
	if err != nil {
		return err
	}
	if s.release, s.preparing = rel, rel != nil; s.preparing {
		return nil
	}
	s.release, err = releaseOfCluster(ctx, r.Client, s.cluster)
	return err
}

// preparedRelease returns the release whose add-ons the cluster is to have before its class; nil if there is none.
func preparedRelease(ctx context.Context, c client.Reader,
	cluster *clusterv1.Cluster) (*csv1.ClusterStackRelease, error) {
	namespace, name, ok := strings.Cut(cluster.Annotations[v1alpha1.PrepareAnnotation], "/")
	if !ok {
		return nil, nil
	}
	parsed, err := version.ParseReleaseName(name)
	if err != nil {
		return nil, nil // the name is of no release
	}
	return releaseOfClass(ctx, c, client.ObjectKey{Namespace: namespace, Name: parsed.Class()})
}

// releaseOfCluster returns the release of a cluster's class; nil if there is none.
func releaseOfCluster(ctx context.Context, c client.Reader,
	cluster *clusterv1.Cluster) (*csv1.ClusterStackRelease, error) {
	class, ok := lineage.ClassOfCluster(cluster)
	if !ok {
		return nil, nil
	}
	return releaseOfClass(ctx, c, class)
}

// releaseOfClass returns the release that owns a class; nil if none does.
func releaseOfClass(ctx context.Context, c client.Reader, class client.ObjectKey) (*csv1.ClusterStackRelease, error) {
	key, ok := lineage.ReleaseOfClass(class)
	if !ok {
		return nil, nil
	}
	rel := &csv1.ClusterStackRelease{}
	if err := c.Get(ctx, key, rel); err != nil {
		return nil, apierror.IgnoreObjectNotFound(err, "clusterstackreleases", key.Name)
	}
	if made, err := lineage.OwnsClass(ctx, c, rel, class); err != nil || !made {
		return nil, err
	}
	return rel, nil
}

// ensureAddon creates the cluster's ClusterAddon, or restores its owner reference and cluster reference.
func (r *Reconciler) ensureAddon(ctx context.Context, s *scope) error {
	o := &csv1.ClusterAddon{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: csv1.AddonPrefix + s.cluster.Name}, o)
	switch {
	case apierrors.IsNotFound(err) && (s.release == nil || !s.cluster.DeletionTimestamp.IsZero()):
		return endRun()
	case apierrors.IsNotFound(err):
		o.Namespace, o.Name = s.cluster.Namespace, csv1.AddonPrefix+s.cluster.Name
		o.OwnerReferences = []metav1.OwnerReference{ownerReferenceTo(s.cluster)}
		o.Spec.ClusterRef = newClusterRef(s.cluster)
		if err := r.Client.Create(ctx, o); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	s.setAddon(o)
	// The operator that came before set it, and nothing else would remove it.
	controllerutil.RemoveFinalizer(o, csv1.AddonFinalizer)
	if !o.DeletionTimestamp.IsZero() || !s.cluster.DeletionTimestamp.IsZero() {
		return endRun() // add-ons go with their cluster
	}
	if !isOwnedBy(o, s.cluster) {
		o.OwnerReferences = append(o.OwnerReferences, ownerReferenceTo(s.cluster))
	}
	if !refersTo(o.Spec.ClusterRef, s.cluster) {
		o.Spec.ClusterRef = newClusterRef(s.cluster)
	}
	if s.release == nil {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonNotFromRelease,
			"the cluster's class is of no release here; what was applied is left as it is")
		return endRun()
	}
	return nil
}

// newClusterRef returns a reference to the cluster for the spec.
func newClusterRef(c *clusterv1.Cluster) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: c.Namespace, Name: c.Name,
	}
}

// refersTo reports whether a reference is to the cluster, in a version that Cluster API has.
func refersTo(ref *corev1.ObjectReference, c *clusterv1.Cluster) bool {
	return ref != nil && ref.Kind == "Cluster" && ref.Name == c.Name &&
		(ref.Namespace == "" || ref.Namespace == c.Namespace) &&
		(ref.APIVersion == clusterv1.GroupVersion.String() || ref.APIVersion == clusterv1.GroupVersion.Group+"/v1beta1")
}

// isOwnedBy reports whether the cluster is among the owners, by its UID.
func isOwnedBy(o *csv1.ClusterAddon, c *clusterv1.Cluster) bool {
	for _, ref := range o.OwnerReferences {
		if ref.UID == c.UID {
			return true
		}
	}
	return false
}

// ownerReferenceTo returns a controller reference to the cluster.
func ownerReferenceTo(c *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID, Controller: ptr.To(true),
	}
}

// checkNamespaceAllowed checks that the cluster is not paused, and that the stack lets its namespace use its releases.
func (r *Reconciler) checkNamespaceAllowed(ctx context.Context, s *scope) error {
	if annotations.IsPaused(s.cluster, s.addon) {
		s.conditions.SetFalse(csv1.ConditionClusterReady, clusterv1.PausedReason,
			"the cluster is paused, so its add-ons are left as they are")
		return endRun()
	}
	of, err := lineage.StackOfRelease(ctx, r.Client, s.release)
	if err != nil {
		return err
	}
	s.stack = of
	ok, err := lineage.ServesNamespace(ctx, r.Client, of, s.release, s.cluster.Namespace)
	if err != nil {
		return err
	}
	if !ok {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonNotAllowed,
			fmt.Sprintf("release %s/%s does not serve clusters of namespace %s; its ClusterStack must allow it in spec.allowedNamespaces", s.release.Namespace, s.release.Name, s.cluster.Namespace))
		return reconcile.Wait(time.Minute, "permission")
	}
	return nil
}

// loadContent loads the content of the release. Fetching it is the work of the release's controller, unless what is on
// disk is damaged.
func (r *Reconciler) loadContent(ctx context.Context, s *scope) error {
	if s.release.Status.Digest == "" {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonReleaseNotReady,
			fmt.Sprintf("release %s/%s is not ready", s.release.Namespace, s.release.Name))
		return reconcile.Wait(retryDelay, "release %s", s.release.Name)
	}
	var err error
	if s.content, _, err = r.Releases.Content(ctx, r.Client, s.release); err != nil {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonReleaseNotReady,
			fmt.Sprintf("release %s/%s: %v", s.release.Namespace, s.release.Name, err))
	}
	return err
}
