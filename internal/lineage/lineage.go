// Package lineage knows how stacks, releases and clusters belong together: which release the class of a
// cluster is of, which clusters use a release, and whom a stack serves.
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/stack/version"
)

// classIndex finds Clusters by their class, as namespace/name.
const classIndex = "spec.topology.classRef"

// IndexClustersByClass makes Clusters findable by their class. A cache needs it once.
func IndexClustersByClass(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &clusterv1.Cluster{}, classIndex, func(o client.Object) []string {
		if c, ok := o.(*clusterv1.Cluster); ok {
			if class, ok := ClassOfCluster(c); ok {
				return []string{class.String()}
			}
		}
		return nil
	})
}

// ClassOfCluster is that of a cluster; one without topology has none.
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

// ReleaseOfClass is the release a class would be of, by its name.
func ReleaseOfClass(class client.ObjectKey) (client.ObjectKey, bool) {
	r, err := version.ParseReleaseName(class.Name)
	if err != nil || r.Class() != class.Name {
		return client.ObjectKey{}, false
	}
	return client.ObjectKey{Namespace: class.Namespace, Name: r.Tag()}, true
}

// HasClassInInventory says that a class is one of the release's objects.
func HasClassInInventory(r *csv1.ClusterStackRelease, class client.ObjectKey) bool {
	return r.Namespace == class.Namespace && slices.ContainsFunc(r.Status.Resources, func(o csv1.Resource) bool {
		return o.Group == clusterv1.GroupVersion.Group && o.Kind == "ClusterClass" && o.Name == class.Name
	})
}

// OwnsClass says that a class is the release's: one of its objects, and not one of somebody else that only has its
// name and is listed because the release could not be applied over it.
func OwnsClass(ctx context.Context, c client.Reader, r *csv1.ClusterStackRelease, class client.ObjectKey) (bool, error) {
	if !HasClassInInventory(r, class) {
		return false, nil
	}
	applied := slices.ContainsFunc(r.Status.Resources, func(o csv1.Resource) bool {
		return o.Group == clusterv1.GroupVersion.Group && o.Kind == "ClusterClass" && o.Name == class.Name && o.Status == csv1.ResourceSynced
	})
	if applied {
		return true, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	if err := c.Get(ctx, class, m); err != nil {
		err = apierror.IgnoreObjectNotFound(err, "clusterclasses", class.Name)
		return err == nil, err // nobody has it yet
	}
	return metav1.IsControlledBy(m, r), nil
}

// ClustersOfRelease are those whose class is the release's, in any namespace, sorted.
func ClustersOfRelease(ctx context.Context, c client.Reader, release client.ObjectKey) ([]clusterv1.Cluster, error) {
	name, err := version.ParseReleaseName(release.Name)
	if err != nil {
		return nil, nil // no class can be of it
	}
	var l clusterv1.ClusterList
	class := client.ObjectKey{Namespace: release.Namespace, Name: name.Class()}
	if err := c.List(ctx, &l, client.MatchingFields{classIndex: class.String()}); err != nil {
		return nil, fmt.Errorf("looking for clusters of class %s: %w", class, err)
	}
	slices.SortFunc(l.Items, func(a, b clusterv1.Cluster) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return l.Items, nil
}

// maxNames is how many names a sentence has.
const maxNames = 10

// ClusterNames lists clusters for a sentence.
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

// StackOfRelease is the ClusterStack a release belongs to: the one that owns it, or else one in the same namespace
// that is for its line. There may be none.
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
		if found == nil && owner == nil && IsReleaseOfStack(s, r.Name) {
			found = s
		}
	}
	return found, nil
}

// IsReleaseOfStack says that a release is of the line of a stack, and of its channel or one of the versions it names.
func IsReleaseOfStack(s *csv1.ClusterStack, release string) bool {
	r, ok := ReleaseInLine(s, release)
	return ok && (IsInChannel(s.Spec.Channel, r.Version) || slices.ContainsFunc(s.Spec.Versions, func(text string) bool {
		v, err := version.Parse(text)
		return err == nil && v == r.Version
	}))
}

// ReleaseInLine says that a release is of the line of a stack. Its name must be spelled as we spell it: another
// spelling would be the same version once more.
func ReleaseInLine(s *csv1.ClusterStack, release string) (version.ReleaseName, bool) {
	r, err := version.ParseReleaseName(release)
	return r, err == nil && r.Tag() == release && LineOfStack(s).SameLine(r.ReleaseLine)
}

// LineOfStack is what the releases of a stack have in common.
func LineOfStack(s *csv1.ClusterStack) version.ReleaseLine {
	k, _ := version.ParseKubernetes(s.Spec.KubernetesVersion) // its form is checked by the API
	return version.ReleaseLine{Provider: s.Spec.Provider, Name: s.Spec.Name, Kubernetes: k}
}

// IsInChannel says that a version is of a channel: custom is all that is not stable.
func IsInChannel(c csv1.Channel, v version.Version) bool {
	return v.IsStable() == (c != csv1.ChannelCustom)
}

// ServesNamespace says whether a stack lets clusters of a namespace use its releases. The error is NotFound if that depends on the
// namespace, and nobody knows it, or not yet.
func ServesNamespace(ctx context.Context, c client.Reader, s *csv1.ClusterStack, release *csv1.ClusterStackRelease, namespace string) (bool, error) {
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
		return true, nil // whatever its labels are: it may be so new that the cache does not have it
	}
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}

// ClassChanged hears of Clusters that come or go or change their class, and not of all the rest that happens
// to them.
func ClassChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*clusterv1.Cluster)
		b, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return ok && ok2 && a.Spec.Topology.ClassRef != b.Spec.Topology.ClassRef
	}}
}
