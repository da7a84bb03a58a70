package clusterstack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/version"
)

// wantedReleases returns the names of the releases that should be there, and the errors of versions that are invalid.
func wantedReleases(s *scope) (want map[string]bool, bad []string) {
	want = map[string]bool{}
	for _, v := range s.object.Spec.Versions {
		parsed, err := version.Parse(v)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		want[version.ReleaseName{ReleaseLine: lineage.LineOfStack(s.object), Version: parsed}.Tag()] = true
	}
	if latest, ok := newestAtSource(s.source); ok && ptr.Deref(s.object.Spec.AutoSubscribe, true) {
		want[latest.Tag()] = true
	}
	return want, bad
}

// newestAtSource returns the release with the highest version at the source.
func newestAtSource(l sourceState) (latest version.ReleaseName, ok bool) {
	for i, e := range l.entries {
		if i == 0 || version.Compare(e.Release.Version, latest.Version) > 0 {
			latest, ok = e.Release, true
		}
	}
	return latest, ok
}

// newestReady returns the release with the highest version of which clusters can be made.
func newestReady(have []csv1.ClusterStackRelease) (latest *csv1.ClusterStackRelease) {
	var best version.Version
	for i := range have {
		r, err := version.ParseReleaseName(have[i].Name)
		if err != nil || !isReady(&have[i]) {
			continue
		}
		if latest == nil || version.Compare(r.Version, best) > 0 {
			latest, best = &have[i], r.Version
		}
	}
	return latest
}

// isReady reports whether clusters can be made of a release.
func isReady(r *csv1.ClusterStackRelease) bool {
	return r.DeletionTimestamp.IsZero() && ptr.Deref(r.Status.Ready, false)
}

// syncReleases creates releases that are wanted, and deletes those that are neither wanted, nor in use, nor the newest
// that is ready. As long as the source has never answered or is empty, or a version is invalid, nothing is deleted: it
// may be what was meant.
func (r *Reconciler) syncReleases(ctx context.Context, s *scope) error {
	want, bad := wantedReleases(s)
	if len(bad) > 0 {
		s.addProblem(csv1.ReasonNameInvalid, "spec.versions: "+strings.Join(bad, "; "))
	}
	emptied := s.isSourceEmptied()
	if emptied {
		s.conditions.SetFalse(csv1.ConditionSourceAvailable, csv1.ReasonNoRelease,
			s.source.describeNoReleases(s.object)+", though it had; what is there is kept")
	}
	canDelete := s.source.answered && len(bad) == 0 && !emptied
	latest := newestReady(s.releases)
	have := map[string]bool{}
	for i := range s.releases {
		rel := &s.releases[i]
		have[rel.Name] = true
		// The newest that is ready stays in any case, so that new clusters can always be made.
		keep := want[rel.Name] || s.inUse[rel.Name] || (latest != nil && rel.Name == latest.Name) || !canDelete
		if err := r.deleteOrAdopt(ctx, s, rel, keep); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(mapKeys(want)) {
		if !have[name] {
			if err := r.createRelease(ctx, s, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSourceEmptied reports whether the source has nothing any more that it must have had: it is more likely that a disk
// is not mounted than that everything was withdrawn.
func (s *scope) isSourceEmptied() bool {
	return s.source.answered && s.source.err == nil && len(s.source.entries) == 0 &&
		slices.ContainsFunc(s.releases, func(r csv1.ClusterStackRelease) bool {
			return lineage.IsInChannel(s.object.Spec.Channel, versionOf(&r))
		})
}

// deleteOrAdopt deletes a release that is not needed, and restores the owner reference of one that is.
func (r *Reconciler) deleteOrAdopt(ctx context.Context, s *scope, rel *csv1.ClusterStackRelease, keep bool) error {
	if !rel.DeletionTimestamp.IsZero() {
		return nil
	}
	if !keep {
		err := r.Client.Delete(ctx, rel, client.Preconditions{UID: &rel.UID})
		if apierrors.IsForbidden(err) { // admission knows of a cluster that uses it since
			return nil
		}
		return apierror.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(rel, s.object) {
		return nil
	}
	before := rel.DeepCopy()
	rel.OwnerReferences = append(rel.OwnerReferences, ownerReference(s.object))
	return reconcile.Write(ctx, r.Client, before, rel)
}

// createRelease creates a release that is wanted.
func (r *Reconciler) createRelease(ctx context.Context, s *scope, name string) error {
	rel := &csv1.ClusterStackRelease{}
	rel.Namespace, rel.Name = s.object.Namespace, name
	rel.OwnerReferences = []metav1.OwnerReference{ownerReference(s.object)}
	err := r.Client.Create(ctx, rel)
	if apierrors.IsAlreadyExists(err) {
		return r.checkReleaseOwner(ctx, s, name)
	}
	if apierrors.IsInvalid(err) { // tags at a source may be no valid names of objects
		s.addProblem(csv1.ReasonNameInvalid, fmt.Sprintf("release %s cannot be made: %v", name, err))
		return nil
	}
	if err != nil {
		return err
	}
	s.releases = append(s.releases, *rel)
	r.Events.Eventf(s.object, rel, "Normal", "ReleaseAdded", "Reconcile", "release %s is wanted now", name)
	return nil
}

// checkReleaseOwner reports a release that exists and belongs to another stack. If the cache only does not have ours
// yet, nothing is wrong.
func (r *Reconciler) checkReleaseOwner(ctx context.Context, s *scope, name string) error {
	rel := &csv1.ClusterStackRelease{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: name}, rel); err != nil {
		return client.IgnoreNotFound(err)
	}
	if controllerRef := metav1.GetControllerOf(rel); controllerRef != nil && controllerRef.UID != s.object.UID {
		s.addProblem(csv1.ReasonNotOurs,
			fmt.Sprintf("release %s belongs to %s %s already; delete one of the two, or have them in two namespaces", name,
				controllerRef.Kind, controllerRef.Name))
	}
	return nil
}

// ownerReference returns a controller reference to the stack.
func ownerReference(o *csv1.ClusterStack) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStack", Name: o.Name, UID: o.UID, Controller: ptr.To(true),
	}
}
