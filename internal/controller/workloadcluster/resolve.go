package workloadcluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/stack/version"
)

// resolveRelease finds the release that the spec asks for, and the one that the Cluster is to have now: a cluster goes
// to a new release only after that release's add-ons are applied.
func (r *Reconciler) resolveRelease(ctx context.Context, s *scope) error {
	var err error
	s.description = r.Provider.LastDescription()
	if s.catalogue, err = lineage.ReadCatalogue(ctx, r.Client, s.object.Namespace); err != nil {
		return err
	}
	if s.running, err = r.runningRelease(ctx, s.cluster); err != nil {
		return err
	}
	wanted, err := s.catalogue.Choose(s.description.StackProviderName(), s.object.Spec.Stack)
	var unavailable *lineage.ReleaseUnavailableError
	if errors.As(err, &unavailable) {
		return s.reportUnresolved(unavailable.Reason, advice{unavailable.Text, unavailable.Actor, unavailable.Next})
	}
	if err != nil {
		return err
	}
	s.wanted = s.keepRunning(wanted)
	if why, reason := s.checkUpgrade(s.wanted); why != "" {
		return s.reportUnresolved(reason, advice{
			fmt.Sprintf("release %s cannot be reached: %s", s.wanted.Tag(), why), v1alpha1.Customer,
			"choose another release in spec.stack",
		})
	}
	s.conditions.SetTrue(v1alpha1.ConditionResolved, fmt.Sprintf("the cluster is to be of release %s", s.wanted.Tag()))
	st := &s.object.Status.Versions
	st.WantedRelease, st.WantedKubernetes = s.wanted.Tag(), s.wanted.Object.Status.KubernetesVersion
	s.chooseTarget()
	return nil
}

// reportUnresolved says why the release of the spec is not available. A cluster that runs stays at its own, and the
// rest of the spec is followed as far as that goes.
func (s *scope) reportUnresolved(reason string, a advice) error {
	s.stall(v1alpha1.ConditionResolved, reason, a)
	if s.running == nil {
		return reconcile.Wait(0, "%s", a.text) // watches of stacks and releases report a change
	}
	s.wanted, s.target, s.held = *s.running, *s.running, true
	return nil
}

// runningRelease returns the release of the Cluster's class, whether or not it would serve a new cluster; nil if there
// is none.
func (r *Reconciler) runningRelease(ctx context.Context, c *clusterv1.Cluster) (*lineage.CatalogueEntry, error) {
	if c == nil {
		return nil, nil
	}
	class, ok := lineage.ClassOfCluster(c)
	if !ok {
		return nil, nil
	}
	key, ok := lineage.ReleaseOfClass(class)
	if !ok {
		return nil, nil
	}
	name, err := version.ParseReleaseName(key.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // it is none of ours
	}
	o := &csv1.ClusterStackRelease{}
	if err := r.Client.Get(ctx, key, o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &lineage.CatalogueEntry{ReleaseName: name, Object: o}, nil
}

// keepRunning stays at the running release if it is newer than the newest of the channel: if the newest was withdrawn,
// going back may be impossible. Nor is it left for the same release of another namespace, nor for one with an older
// Kubernetes: that is no fault of the customer's, and a later release may have a newer one.
func (s *scope) keepRunning(wanted lineage.CatalogueEntry) lineage.CatalogueEntry {
	if s.running == nil || s.object.Spec.Stack.Version != "" || !s.running.SameLine(wanted.ReleaseLine) ||
		s.running.Version.IsStable() != wanted.Version.IsStable() {
		return wanted
	}
	if version.Compare(s.running.Version, wanted.Version) >= 0 {
		return *s.running
	}
	if why, _ := s.checkUpgrade(wanted); why != "" {
		return *s.running
	}
	return wanted
}

// checkUpgrade says why the cluster cannot go to a release; "" if it can.
func (s *scope) checkUpgrade(to lineage.CatalogueEntry) (why, reason string) {
	if s.cluster == nil {
		return "", ""
	}
	return lineage.CheckUpgrade(s.cluster.Spec.Topology.Version, to.Object.Status.KubernetesVersion)
}

// chooseTarget decides which release the Cluster is to have now: the wanted one, unless its add-ons are not applied
// yet.
func (s *scope) chooseTarget() {
	s.target = s.wanted
	if s.running == nil || s.running.Key() == s.wanted.Key() {
		return
	}
	if s.isBlockedByUpgrade() {
		s.target, s.held, s.wanted = *s.running, true, *s.running
		s.conditions.SetFalse(v1alpha1.ConditionResolved, v1alpha1.ReasonProgressing,
			fmt.Sprintf("release %s has to wait until the upgrade to Kubernetes %s is done",
				s.object.Status.Versions.WantedRelease, s.cluster.Spec.Topology.Version))
		return
	}
	if !s.hasAddons() || s.hasPreparedAddons() {
		return
	}
	s.target, s.held = *s.running, true
}

// isBlockedByUpgrade reports whether an upgrade of Kubernetes is under way, and the wanted release would be another
// one: Cluster API accepts none before the first is done, and the add-ons of two releases must not be mixed.
func (s *scope) isBlockedByUpgrade() bool {
	at := s.cluster.Spec.Topology.Version
	if s.wanted.Object.Status.KubernetesVersion == at || !isControlPlaneInitialized(s.cluster) {
		return false
	}
	cp, w := ptr.Deref(s.cluster.Status.ControlPlane,
		clusterv1.ClusterControlPlaneStatus{}), ptr.Deref(s.cluster.Status.Workers, clusterv1.WorkersStatus{})
	// Versions that are not reported hold nothing up.
	runs := func(lowest string) bool { return lowest == "" || lowest == at }
	return !runs(lowestVersion(cp.Versions)) || !runs(lowestVersion(w.Versions))
}

// hasAddons reports whether the cluster has add-ons of a release. One that never got so far has none to wait for: the
// new release may be what it needs.
func (s *scope) hasAddons() bool { return s.addon != nil && s.addon.Status.Release != "" }

// hasPreparedAddons reports whether all add-ons of the wanted release are applied.
func (s *scope) hasPreparedAddons() bool {
	st, target := s.addon.Status, s.wanted.Key().String()
	return st.Release == target && st.Target == target && st.TargetDigest == s.wanted.Object.Status.Digest
}

// isPreparingAddons reports whether the add-ons of the wanted release are applied before its class.
func (s *scope) isPreparingAddons() bool {
	return s.target.Object != nil && s.wanted.Object != nil && s.target.Key() != s.wanted.Key()
}
