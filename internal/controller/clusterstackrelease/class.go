package clusterstackrelease

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// pendingRetry is how soon objects are checked again that are being deleted and have no watch.
const pendingRetry = 2 * time.Second

// waitForClass waits until Cluster API has reconciled the class and found nothing wrong with it.
func (r *Reconciler) waitForClass(ctx context.Context, s *scope) error {
	c := &clusterv1.ClusterClass{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: s.name.Class()}, c); err != nil {
		s.conditions.SetFalse(csv1.ConditionClassReady, csv1.ReasonClassNotReady, err.Error())
		return err
	}
	for _, t := range []string{clusterv1.ClusterClassVariablesReadyCondition,
		clusterv1.ClusterClassRefVersionsUpToDateCondition} {
		cond := meta.FindStatusCondition(c.Status.Conditions, t)
		switch {
		// A condition of an older generation says nothing about the class as it is now.
		case cond == nil, cond.ObservedGeneration != c.Generation:
			s.conditions.SetFalse(csv1.ConditionClassReady, csv1.ReasonClassNotSeen,
				"Cluster API has not looked at the class yet")
		case cond.Status != metav1.ConditionTrue && cond.Reason != clusterv1.ClusterClassRefVersionsNotUpToDateReason:
			s.conditions.SetFalse(csv1.ConditionClassReady, csv1.ReasonClassNotReady,
				fmt.Sprintf("Cluster API does not take the class: %s is %s: %s", t, cond.Status, cond.Message))
		default:
			continue
		}
		return reconcile.Wait(0, "class %s", c.Name) // the watch of its kind reports it
	}
	s.reportOldReferences(c)
	s.conditions.SetTrue(csv1.ConditionClassReady, "clusters can be made of class "+c.Name)
	return nil
}

// reportOldReferences warns of references to templates in versions that are not the newest of their kinds, as most
// releases of older tools have: Cluster API reads the template in the newest version all the same.
func (s *scope) reportOldReferences(c *clusterv1.ClusterClass) {
	cond := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterClassRefVersionsUpToDateCondition)
	if cond == nil || cond.Status != metav1.ConditionFalse {
		s.conditions.Remove(csv1.ConditionOldReferences)
		return
	}
	s.conditions.Set(metav1.Condition{
		Type: csv1.ConditionOldReferences, Status: metav1.ConditionTrue, Reason: csv1.ReasonOldVersion,
		Message: "the class works, but will not once these versions are no longer served: " +
			strings.Join(listedIn(cond.Message), ", "),
	})
}

// listedIn returns the items of a list in a message of Cluster API, which has one in each line after the first.
func listedIn(message string) (items []string) {
	for line := range strings.Lines(message) {
		if item, ok := strings.CutPrefix(strings.TrimSpace(line), "* "); ok {
			items = append(items, item)
		}
	}
	if items == nil {
		return []string{message}
	}
	return items
}

// checkNotInUse waits for the last cluster of a release that is being deleted.
func (r *Reconciler) checkNotInUse(ctx context.Context, s *scope) error {
	users, err := lineage.ClustersOfRelease(ctx, r.Client, client.ObjectKeyFromObject(s.object))
	if err != nil {
		return err
	}
	if len(users) > 0 {
		for _, c := range users {
			s.users = append(s.users, c.Namespace+"/"+c.Name)
		}
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonInUse,
			fmt.Sprintf("the release is to be deleted and is used by %s; give them another class, or delete them",
				lineage.ClusterNames(users)))
		return reconcile.Wait(0, "clusters") // the watch of Clusters reports it
	}
	return nil
}

// pruneObjects deletes all objects of the release, then removes its finalizer.
func (r *Reconciler) pruneObjects(ctx context.Context, s *scope) error {
	results := r.newApplier(s.object).Prune(ctx, inventoryRefs(s.object.Status.Resources))
	ignoreNeverApplied(s.object.Status.Resources, results)
	s.object.Status.Resources = apply.RecordResults(s.object.Status.Resources, nil, results)
	if err := apply.JoinErrors(results); err != nil {
		s.conditions.SetFalse(csv1.ConditionApplied, csv1.ReasonDeleting, err.Error())
		if apply.IsPending(results) {
			return reconcile.Wait(pendingRetry, "%v", err)
		}
		return err
	}
	controllerutil.RemoveFinalizer(s.object, csv1.ReleaseFinalizer)
	return nil
}

// ignoreNeverApplied treats objects as deleted that were never applied and may not be read: whoever lacks the right to
// read them has lacked the right to create them.
func ignoreNeverApplied(inventory []csv1.Resource, results []apply.Result) {
	never := map[apply.Key]bool{}
	for _, r := range inventory {
		never[apply.InventoryRef(r).Key()] = r.Status != csv1.ResourceSynced && r.UID == ""
	}
	for i := range results {
		if apierrors.IsForbidden(results[i].Err) && never[results[i].Ref.Key()] {
			results[i].Err = nil
		}
	}
}
