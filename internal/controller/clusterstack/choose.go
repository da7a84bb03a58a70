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
	"github.com/polder-kaas/polder/internal/controller/usage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/version"
)

// wanted are the names of the releases that should be there, and what is wrong with versions that are none.
func wanted(s *scope) (want map[string]bool, bad []string) {
	want = map[string]bool{}
	for _, v := range s.object.Spec.Versions {
		parsed, err := version.Parse(v)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		want[version.Release{Line: usage.LineOf(s.object), Version: parsed}.Tag()] = true
	}
	if latest, ok := newest(s.look); ok && ptr.Deref(s.object.Spec.AutoSubscribe, true) {
		want[latest.Tag()] = true
	}
	return want, bad
}

// newest is the release with the highest version at the source.
func newest(l look) (latest version.Release, ok bool) {
	for i, e := range l.entries {
		if i == 0 || version.Compare(e.Release.Version, latest.Version) > 0 {
			latest, ok = e.Release, true
		}
	}
	return latest, ok
}

// newestReady is the release with the highest version of which clusters can be made.
func newestReady(have []csv1.ClusterStackRelease) (latest *csv1.ClusterStackRelease) {
	var best version.Version
	for i := range have {
		r, err := version.ParseRelease(have[i].Name)
		if err != nil || !ready(&have[i]) {
			continue
		}
		if latest == nil || version.Compare(r.Version, best) > 0 {
			latest, best = &have[i], r.Version
		}
	}
	return latest
}

func ready(r *csv1.ClusterStackRelease) bool {
	return r.DeletionTimestamp.IsZero() && ptr.Deref(r.Status.Ready, false)
}

// chosen makes releases that are wanted, and deletes those that are neither wanted, nor used, nor the
// newest that works. As long as the source has never answered or is empty, or a version is none, nothing is
// deleted: it may be what was meant.
func (r *Reconciler) chosen(ctx context.Context, s *scope) error {
	want, bad := wanted(s)
	if len(bad) > 0 {
		s.wrong(csv1.ReasonNameInvalid, "spec.versions: "+strings.Join(bad, "; "))
	}
	emptied := s.emptied()
	if emptied {
		s.set(csv1.ConditionSourceAvailable, csv1.ReasonNoRelease, s.look.none(s.object)+", though it had; what is there is kept")
	}
	sure := s.look.known && len(bad) == 0 && !emptied
	latest := newestReady(s.have)
	have := map[string]bool{}
	for i := range s.have {
		rel := &s.have[i]
		have[rel.Name] = true
		keep := want[rel.Name] || s.used[rel.Name] || (latest != nil && rel.Name == latest.Name) || !sure
		if err := r.tend(ctx, s, rel, keep); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(mapKeys(want)) {
		if !have[name] {
			if err := r.make(ctx, s, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptied says that the source has nothing any more of what it must have had: rather a disk is not mounted than
// everything withdrawn.
func (s *scope) emptied() bool {
	return s.look.known && s.look.err == nil && len(s.look.entries) == 0 &&
		slices.ContainsFunc(s.have, func(r csv1.ClusterStackRelease) bool {
			return usage.InChannel(s.object.Spec.Channel, versionOf(&r))
		})
}

// tend deletes a release that is not needed, and puts its owner back if somebody took it away.
func (r *Reconciler) tend(ctx context.Context, s *scope, rel *csv1.ClusterStackRelease, keep bool) error {
	if !rel.DeletionTimestamp.IsZero() {
		return nil
	}
	if !keep {
		err := r.Client.Delete(ctx, rel, client.Preconditions{UID: &rel.UID})
		if apierrors.IsForbidden(err) { // somebody has begun to use it
			return nil
		}
		return apierror.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(rel, s.object) {
		return nil
	}
	before := rel.DeepCopy()
	rel.OwnerReferences = append(rel.OwnerReferences, owner(s.object))
	return reconcile.Write(ctx, r.Client, before, rel)
}

func (r *Reconciler) make(ctx context.Context, s *scope, name string) error {
	rel := &csv1.ClusterStackRelease{}
	rel.Namespace, rel.Name = s.object.Namespace, name
	rel.OwnerReferences = []metav1.OwnerReference{owner(s.object)}
	err := r.Client.Create(ctx, rel)
	if apierrors.IsAlreadyExists(err) {
		return r.foreign(ctx, s, name)
	}
	if apierrors.IsInvalid(err) { // what sources have may be called as no object can be
		s.wrong(csv1.ReasonNameInvalid, fmt.Sprintf("release %s cannot be made: %v", name, err))
		return nil
	}
	if err != nil {
		return err
	}
	s.have = append(s.have, *rel)
	r.Events.Eventf(s.object, rel, "Normal", "ReleaseAdded", "Reconcile", "release %s is wanted now", name)
	return nil
}

// foreign looks at a release that is there and not ours. The cache may just not know that it is.
func (r *Reconciler) foreign(ctx context.Context, s *scope, name string) error {
	rel := &csv1.ClusterStackRelease{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: name}, rel); err != nil {
		return client.IgnoreNotFound(err)
	}
	if of := metav1.GetControllerOf(rel); of != nil && of.UID != s.object.UID {
		s.wrong(csv1.ReasonNotOurs, fmt.Sprintf("release %s belongs to %s %s already; delete one of the two, or have them in two namespaces", name, of.Kind, of.Name))
	}
	return nil
}

func owner(o *csv1.ClusterStack) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStack", Name: o.Name, UID: o.UID, Controller: ptr.To(true)}
}
