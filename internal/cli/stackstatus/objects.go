package stackstatus

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/stack/version"
)

// stackOf is the ClusterStack of a release: the one that owns it or, if none does, one in its namespace
// for its line. There may be none.
func (w objectSet) stackOf(r *csv1.ClusterStackRelease) *csv1.ClusterStack {
	owned := false
	for _, o := range r.OwnerReferences {
		group, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil || group.Group != csv1.GroupVersion.Group || o.Kind != "ClusterStack" {
			continue
		}
		owned = true
		for i := range w.stacks {
			if s := &w.stacks[i]; s.Namespace == r.Namespace && s.Name == o.Name && s.UID == o.UID {
				return s
			}
		}
	}
	// Its owner is gone: another stack of that line has not made it, and the garbage collector will delete it.
	if owned {
		return nil
	}
	for _, s := range w.sortedStacks() {
		if s.Namespace == r.Namespace && lineage.IsReleaseOfStack(s, r.Name) {
			return s
		}
	}
	return nil
}

// classesOf are the classes of a release; before any is listed, the one its name tells.
func classesOf(r *csv1.ClusterStackRelease) (classes []types.NamespacedName) {
	for _, o := range r.Status.Resources {
		if o.Group == clusterv1.GroupVersion.Group && o.Kind == "ClusterClass" {
			classes = append(classes, types.NamespacedName{Namespace: cmp.Or(o.Namespace, r.Namespace), Name: o.Name})
		}
	}
	if n, err := version.ParseReleaseName(r.Name); err == nil && len(classes) == 0 {
		classes = append(classes, types.NamespacedName{Namespace: r.Namespace, Name: n.Class()})
	}
	return classes
}

// clustersByClass are the clusters of each class.
func (w objectSet) clustersByClass() map[types.NamespacedName][]*clusterv1.Cluster {
	users := map[types.NamespacedName][]*clusterv1.Cluster{}
	for i := range w.clusters {
		c := &w.clusters[i]
		if ref := c.Spec.Topology.ClassRef; ref.Name != "" {
			class := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
			users[class] = append(users[class], c)
		}
	}
	return users
}

// addonsByCluster finds ClusterAddons by their clusters, of which their names tell.
func (w objectSet) addonsByCluster() map[types.NamespacedName]*csv1.ClusterAddon {
	addons := map[types.NamespacedName]*csv1.ClusterAddon{}
	for i := range w.addons {
		a := &w.addons[i]
		if cluster, ok := strings.CutPrefix(a.Name, csv1.AddonPrefix); ok {
			addons[types.NamespacedName{Namespace: a.Namespace, Name: cluster}] = a
		}
	}
	return addons
}

// sortedStacks are pointers into the set, by namespace and name.
func (w objectSet) sortedStacks() []*csv1.ClusterStack {
	var all []*csv1.ClusterStack
	for i := range w.stacks {
		all = append(all, &w.stacks[i])
	}
	slices.SortFunc(all, func(a, b *csv1.ClusterStack) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

// sortedReleases has the newest of each line last, and what is no name of a release at the end.
func (w objectSet) sortedReleases() []*csv1.ClusterStackRelease {
	var all []*csv1.ClusterStackRelease
	for i := range w.releases {
		all = append(all, &w.releases[i])
	}
	slices.SortFunc(all, func(a, b *csv1.ClusterStackRelease) int {
		x, badX := version.ParseReleaseName(a.Name)
		y, badY := version.ParseReleaseName(b.Name)
		order := 0
		switch {
		case badX == nil && badY == nil:
			order = version.CompareReleaseNames(x, y)
		case badX == nil:
			order = -1
		case badY == nil:
			order = 1
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), order, strings.Compare(a.Name, b.Name))
	})
	return all
}

// sortClusterReports gives clusters of several classes one order.
func sortClusterReports(all []releaseClusterReport) {
	slices.SortFunc(all, func(a, b releaseClusterReport) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}
