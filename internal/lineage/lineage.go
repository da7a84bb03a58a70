// Package lineage knows how stacks, releases and clusters belong together: which release the class of a cluster is of,
// which clusters use a release, and which namespaces a stack serves. The catalogue of a namespace, and the choice of a
// release from it, are built on that.
package lineage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/stack/version"
)

// classIndex is the field index of Clusters by their class, as namespace/name.
const classIndex = "spec.topology.classRef"

// unknownClass is the class of Clusters that lack fields in the cache because these could not be read.
const unknownClass = "unknown"

// IndexClustersByClass adds the index that ClustersOfRelease needs. A cache needs it once.
func IndexClustersByClass(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &clusterv1.Cluster{}, classIndex, func(o client.Object) []string {
		if c, ok := o.(*clusterv1.Cluster); ok {
			if c.Annotations[v1alpha1.UnreadableAnnotation] != "" && c.ResourceVersion == v1alpha1.UnreadableVersion {
				return []string{unknownClass}
			}
			if class, ok := ClassOfCluster(c); ok {
				return []string{class.String()}
			}
		}
		return nil
	})
}

// ClassOfCluster returns the class of a Cluster. One without topology has none.
func ClassOfCluster(c *clusterv1.Cluster) (client.ObjectKey, bool) {
	ref := c.Spec.Topology.ClassRef
	if ref.Name == "" {
		return client.ObjectKey{}, false
	}
	if ref.Namespace == "" {
		ref.Namespace = c.Namespace
	}
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, true
}

// ReleaseOfClass returns the release that a class is of, by its name alone. Anybody can give that name: see OwnsClass.
func ReleaseOfClass(class client.ObjectKey) (client.ObjectKey, bool) {
	r, err := version.ParseReleaseName(class.Name)
	if err != nil || r.Class() != class.Name {
		return client.ObjectKey{}, false
	}
	return client.ObjectKey{Namespace: class.Namespace, Name: r.Tag()}, true
}

// HasClassInInventory reports whether a class is in the inventory of a release.
func HasClassInInventory(r *csv1.ClusterStackRelease, class client.ObjectKey) bool {
	return r.Namespace == class.Namespace && slices.ContainsFunc(r.Status.Resources, func(o csv1.Resource) bool {
		return o.Group == clusterv1.GroupVersion.Group && o.Kind == "ClusterClass" && o.Name == class.Name
	})
}

// OwnsClass reports whether a class is the release's: it is in its inventory, and is not an object of somebody else
// that has the same name and is listed only because the release could not be applied over it.
func OwnsClass(ctx context.Context, c client.Reader, r *csv1.ClusterStackRelease,
	class client.ObjectKey) (bool, error) {
	if !HasClassInInventory(r, class) {
		return false, nil
	}
	applied := slices.ContainsFunc(r.Status.Resources, func(o csv1.Resource) bool {
		return o.Group == clusterv1.GroupVersion.Group && o.Kind == "ClusterClass" && o.Name == class.Name &&
			o.Status == csv1.ResourceSynced
	})
	if applied {
		return true, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	if err := c.Get(ctx, class, m); err != nil {
		// A 404 for a kind that is not served is no proof that the class is absent (ADR 14).
		err = apierror.IgnoreObjectNotFound(err, "clusterclasses", class.Name)
		return err == nil, err // nobody has it yet, so the release will make it
	}
	return metav1.IsControlledBy(m, r), nil
}

// ClustersOfRelease returns the Clusters, of all namespaces, whose class is the release's, sorted. Those whose class is
// not known are among them: a release that they may use must not be deleted.
func ClustersOfRelease(ctx context.Context, c client.Reader, release client.ObjectKey) ([]clusterv1.Cluster, error) {
	name, err := version.ParseReleaseName(release.Name)
	if err != nil {
		return nil, nil // no class can be of it
	}
	class := client.ObjectKey{Namespace: release.Namespace, Name: name.Class()}.String()
	var found []clusterv1.Cluster
	for _, key := range []string{class, unknownClass} {
		var l clusterv1.ClusterList
		if err := c.List(ctx, &l, client.MatchingFields{classIndex: key}); err != nil {
			return nil, fmt.Errorf("looking for clusters of class %s: %w", class, err)
		}
		found = append(found, l.Items...)
	}
	slices.SortFunc(found, func(a, b clusterv1.Cluster) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return found, nil
}

// maxNames is how many clusters a message names.
const maxNames = 10

// ClusterNames lists clusters for a message.
func ClusterNames(clusters []clusterv1.Cluster) string {
	var names []string
	for i, c := range clusters {
		if i == maxNames {
			names = append(names, fmt.Sprintf("and %d more", len(clusters)-maxNames))
			break
		}
		names = append(names, c.Namespace+"/"+c.Name)
	}
	return strings.Join(names, ", ")
}

// StackOfRelease returns the ClusterStack that a release belongs to: its controller or, without one, the first in the
// same namespace whose line and channel it is of. It is nil if there is none.
func StackOfRelease(ctx context.Context, c client.Reader, r *csv1.ClusterStackRelease) (*csv1.ClusterStack, error) {
	var l csv1.ClusterStackList
	if err := c.List(ctx, &l, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("looking for the stack of release %s: %w", r.Name, err)
	}
	owner := metav1.GetControllerOf(r)
	var found *csv1.ClusterStack
	for i := range l.Items {
		s := &l.Items[i]
		if owner != nil && owner.UID == s.UID {
			return s, nil
		}
		// The owner of a release decides. If it is gone, no other stack takes its place.
		if found == nil && owner == nil && IsReleaseOfStack(s, r.Name) {
			found = s
		}
	}
	return found, nil
}

// IsReleaseOfStack reports whether a release is of the line of a stack, and of its channel or one of the versions it
// names.
func IsReleaseOfStack(s *csv1.ClusterStack, release string) bool {
	r, ok := ReleaseInLine(s, release)
	return ok && (IsInChannel(s.Spec.Channel, r.Version) || slices.ContainsFunc(s.Spec.Versions, func(text string) bool {
		v, err := version.Parse(text)
		return err == nil && v == r.Version
	}))
}

// ReleaseInLine parses the name of a release and reports whether it is of the line of a stack. The name must be spelled
// as Tag does: another spelling would be the same version twice.
func ReleaseInLine(s *csv1.ClusterStack, release string) (version.ReleaseName, bool) {
	r, err := version.ParseReleaseName(release)
	return r, err == nil && r.Tag() == release && LineOfStack(s).SameLine(r.ReleaseLine)
}

// LineOfStack returns what all releases of a stack have in common: provider, name and minor.
func LineOfStack(s *csv1.ClusterStack) version.ReleaseLine {
	k, _ := version.ParseKubernetes(s.Spec.KubernetesVersion) // its form is checked by the API
	return version.ReleaseLine{Provider: s.Spec.Provider, Name: s.Spec.Name, Kubernetes: k}
}

// IsInChannel reports whether a version is of a channel: custom is all that is not stable.
func IsInChannel(c csv1.Channel, v version.Version) bool {
	return v.IsStable() == (c != csv1.ChannelCustom)
}

// ServesNamespace reports whether a stack lets clusters of a namespace use its releases. The error is NotFound if that
// depends on the labels of the namespace, and it does not exist, or is not in the cache yet.
func ServesNamespace(ctx context.Context, c client.Reader, s *csv1.ClusterStack, release *csv1.ClusterStackRelease,
	namespace string) (bool, error) {
	if namespace == release.Namespace {
		return true, nil
	}
	if s == nil || s.Spec.AllowedNamespaces == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.AllowedNamespaces)
	if err != nil {
		return false, fmt.Errorf("spec.allowedNamespaces of ClusterStack %s/%s: %w", s.Namespace, s.Name, err)
	}
	if selector.Empty() {
		return true, nil // whatever its labels are: it may be too new to be in the cache
	}
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}
