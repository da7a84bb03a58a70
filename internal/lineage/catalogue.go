package lineage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/stack/version"
)

// Catalogue is all stacks, with their releases, that one namespace can use.
type Catalogue struct {
	namespace string
	stacks    []catalogueStack
}

// catalogueStack is one ClusterStack with its releases, newest first.
type catalogueStack struct {
	stack    *csv1.ClusterStack
	minor    version.Kubernetes
	releases []CatalogueEntry
}

// CatalogueEntry is one release of a catalogue, ready or not.
type CatalogueEntry struct {
	version.ReleaseName
	Object *csv1.ClusterStackRelease
}

// IsReady reports whether clusters can be made of the release.
func (r CatalogueEntry) IsReady() bool {
	return r.Object.DeletionTimestamp.IsZero() && ptr.Deref(r.Object.Status.Ready, false)
}

// Key returns the key of the ClusterStackRelease.
func (r CatalogueEntry) Key() client.ObjectKey { return client.ObjectKeyFromObject(r.Object) }

// ClassKey returns the key of the release's ClusterClass.
func (r CatalogueEntry) ClassKey() client.ObjectKey {
	return client.ObjectKey{Namespace: r.Object.Namespace, Name: r.Class()}
}

// ReadCatalogue reads the catalogue of a namespace. Stacks of the namespace itself come before those of the shared
// catalogue.
func ReadCatalogue(ctx context.Context, c client.Reader, namespace string) (*Catalogue, error) {
	out := &Catalogue{namespace: namespace}
	for _, ns := range catalogueNamespaces(namespace) {
		var stacks csv1.ClusterStackList
		var releases csv1.ClusterStackReleaseList
		if err := c.List(ctx, &stacks, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("looking for stacks in namespace %s: %w", ns, err)
		}
		if err := c.List(ctx, &releases, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("looking for releases in namespace %s: %w", ns, err)
		}
		slices.SortFunc(stacks.Items, func(a, b csv1.ClusterStack) int { return strings.Compare(a.Name, b.Name) })
		for i := range stacks.Items {
			if err := out.addStack(ctx, c, &stacks.Items[i], releases.Items); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// catalogueNamespaces returns the namespaces whose stacks a namespace may use, its own first.
func catalogueNamespaces(own string) []string {
	if own == v1alpha1.CatalogueNamespace {
		return []string{own}
	}
	return []string{own, v1alpha1.CatalogueNamespace}
}

// addStack adds a stack, with its releases, if it serves the namespace of the catalogue.
func (c *Catalogue) addStack(ctx context.Context, r client.Reader, s *csv1.ClusterStack,
	all []csv1.ClusterStackRelease) error {
	if !s.DeletionTimestamp.IsZero() {
		return nil
	}
	// ServesNamespace reads only the namespace of a release, and all releases of a stack are in its own.
	here := &csv1.ClusterStackRelease{}
	here.Namespace = s.Namespace
	if s.Spec.AllowedNamespaces != nil {
		if _, err := metav1.LabelSelectorAsSelector(s.Spec.AllowedNamespaces); err != nil && s.Namespace != c.namespace {
			return nil //nolint:nilerr // whom it serves nobody knows; that must not keep others from serving
		}
	}
	if ok, err := ServesNamespace(ctx, r, s, here, c.namespace); err != nil || !ok {
		return err
	}
	l := catalogueStack{stack: s, minor: LineOfStack(s).Kubernetes}
	for i := range all {
		if name, ok := ReleaseInLine(s, all[i].Name); ok && IsReleaseOfStack(s, all[i].Name) {
			l.releases = append(l.releases, CatalogueEntry{name, &all[i]})
		}
	}
	slices.SortFunc(l.releases, func(a, b CatalogueEntry) int { return version.Compare(b.Version, a.Version) })
	c.stacks = append(c.stacks, l)
	return nil
}

// findStacks returns the ClusterStacks of one provider and name, sorted by their minors. Of those of one minor, the
// namespace's own come first.
func (c *Catalogue) findStacks(provider, name string) []catalogueStack {
	var out []catalogueStack
	for _, l := range c.stacks {
		if l.stack.Spec.Provider == provider && l.stack.Spec.Name == name {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b catalogueStack) int { return version.CompareKubernetes(a.minor, b.minor) })
	return out
}

// NewestMinor returns the newest minor of which a stack has a release that is ready or, if none is ready, the newest it
// is for; "" if there is no such stack.
func (c *Catalogue) NewestMinor(provider, name string, channel v1alpha1.Channel) string {
	ready, newest := "", ""
	for _, l := range c.findStacks(provider, name) {
		if channelOf(l.stack) != channel {
			continue
		}
		newest = l.minor.MinorString()
		if slices.ContainsFunc(l.releases, CatalogueEntry.IsReady) {
			ready = newest
		}
	}
	return cmp.Or(ready, newest)
}

// channelOf returns the channel of a ClusterStack. The default is stable.
func channelOf(s *csv1.ClusterStack) v1alpha1.Channel {
	if s.Spec.Channel == csv1.ChannelCustom {
		return v1alpha1.ChannelCustom
	}
	return v1alpha1.ChannelStable
}

// DescribeStacks names all stacks, with the providers and minors they are for.
func (c *Catalogue) DescribeStacks() []string {
	minors := map[string][]string{}
	for _, l := range c.stacks {
		k := l.stack.Spec.Name + " of " + l.stack.Spec.Provider
		if m := l.minor.MinorString(); !slices.Contains(minors[k], m) {
			minors[k] = append(minors[k], m)
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(minors)) {
		slices.SortFunc(minors[k], compareMinors)
		out = append(out, fmt.Sprintf("%s (%s)", k, strings.Join(minors[k], ", ")))
	}
	return out
}

// compareMinors compares minors as MinorString writes them.
func compareMinors(a, b string) int {
	x, _ := version.ParseKubernetes(a) // MinorString wrote it, so it can be read
	y, _ := version.ParseKubernetes(b) // as above
	return version.CompareKubernetes(x, y)
}
