package clusteraddon

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func TestHoldUpgrade(t *testing.T) {
	with := func(st csv1.ClusterAddonStatus, conditions ...metav1.Condition) *csv1.ClusterAddon {
		st.Conditions = conditions
		return newAddon(st)
	}
	const done, applying = csv1.StageDone, csv1.StageApplying
	reached, unreached := conditionIs(csv1.ConditionClusterReady, "True", "it takes add-ons"), conditionIs(csv1.ConditionClusterReady, "False", "it is paused")
	waits := conditionIs(csv1.ConditionApplied, "False", "stage cni waits")
	applied := conditionIs(csv1.ConditionApplied, "True", "all stages are done")
	noClass := newRelease("v1")
	noClass.Status.Resources = nil
	otherAddon := newAddon(at("v1", "v1", "v1", upgrade, done))
	otherAddon.Namespace = "b"
	for name, c := range map[string]struct {
		cluster *clusterv1.Cluster // of v1 if nil
		release *csv1.ClusterStackRelease
		addon   *csv1.ClusterAddon
		want    string // empty if the upgrade is not held
	}{
		"a cluster without a class":              {cluster: &clusterv1.Cluster{}, release: newRelease("v1")},
		"a cluster of another class":             {cluster: newCluster("x"), release: newRelease("v1")},
		"a class of a release that is not there": {cluster: newCluster("v2"), release: newRelease("v1")},
		"a class that is not the release's":      {release: noClass},
		"a cluster of another class, with add-ons": {cluster: newCluster("x"), release: newRelease("v1"),
			addon: with(at("v0", "v1", "v1", upgrade, applying), waits)},
		"nobody has looked at its add-ons":       {release: newRelease("v1"), want: ", which have not been looked at yet"},
		"only those of another cluster are done": {release: newRelease("v1"), addon: otherAddon, want: ", which have not been looked at yet"},
		"all stages are done":                    {release: newRelease("v1"), addon: with(at("v1", "v1", "v1", upgrade, done, done), reached, applied)},
		"all stages are done, and health does not matter": {
			release: newRelease("v1"), addon: with(at("v1", "v1", "v1", upgrade, done), reached, applied, conditionIs(csv1.ConditionHealthy, "False", "x ails")),
		},
		"there are no stages": {release: newRelease("v1"), addon: with(at("v1", "v1", "v1", upgrade), reached, applied)},
		"a stage waits":       {release: newRelease("v1"), addon: with(at("v0", "v1", "v1", upgrade, done, applying), reached, waits), want: ": stage cni waits"},
		"a stage waits, and the cluster cannot be reached": {
			release: newRelease("v1"), addon: with(at("v0", "v1", "v1", upgrade, applying), waits, unreached), want: ": it is paused",
		},
		"stages are done, but something is left over": {release: newRelease("v1"), addon: with(at("v0", "v1", "v1", upgrade, done), reached, waits),
			want: ": stage cni waits"},
		"nothing is said of what it waits for": {release: newRelease("v1"), addon: with(at("v0", "v1", "v1", upgrade, done)),
			want: ", which are being applied"},
		"back to the release it was at, not done": {
			release: newRelease("v1"), addon: with(at("v1", "v1", "v1", upgrade, done, applying), reached, applied), want: ", which are being applied",
		},
		"the release has another content by now": {
			release: newRelease("v1"), addon: with(at("v1", "v1", "old", upgrade, done), reached, applied), want: ", which are being applied",
		},
		"those of the release before are done": {
			release: newRelease("v1"), addon: with(at("v0", "v0", "v0", upgrade, done), reached, applied), want: ", which have not been begun yet",
		},
		"those of the release before are not done": {
			release: newRelease("v1"), addon: with(at("", "v0", "v0", upgrade, applying), reached, waits), want: ", which have not been begun yet",
		},
		"they cannot begin": {release: newRelease("v1"), addon: with(at("v0", "v0", "v0", upgrade, done), unreached, applied), want: ": it is paused"},
		"on its way elsewhere": {
			release: newRelease("v1"), addon: with(at("v1", "v2", "v1", upgrade, done), reached, applied), want: ", which have not been begun yet",
		},
		"its status is lost": {release: newRelease("v1"), addon: with(csv1.ClusterAddonStatus{}), want: ", which have not been begun yet"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cluster == nil {
				c.cluster = newCluster("v1")
			}
			objects := []client.Object{c.release}
			if c.addon != nil {
				objects = append(objects, c.addon)
			}
			request := &runtimehooksv1.BeforeClusterUpgradeRequest{Cluster: *c.cluster, ToKubernetesVersion: "v1.28.1"}
			var got, want runtimehooksv1.BeforeClusterUpgradeResponse
			want.Status = runtimehooksv1.ResponseStatusSuccess
			if c.want != "" {
				want.RetryAfterSeconds, want.Message = 5, "the upgrade to v1.28.1 waits for the add-ons of docker-ferrol-1-27-v1"+c.want
			}
			if err := HoldUpgrade(t.Context(), newClient(t, objects...), request, &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// If the answer cannot be found out, Cluster API must get an error: neither answer is safe.
func TestHoldUpgradeWithoutAnAnswer(t *testing.T) {
	for name, failing := range map[string]client.Object{"of the release": &csv1.ClusterStackRelease{}, "of the add-ons": &csv1.ClusterAddon{}} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(newClient(t, newRelease("v1"), newAddon(at("v1", "v1", "v1", upgrade))), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, release := o.(*csv1.ClusterStackRelease); release == (name == "of the release") {
						return errBroken
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			var got runtimehooksv1.BeforeClusterUpgradeResponse
			err := HoldUpgrade(t.Context(), c, &runtimehooksv1.BeforeClusterUpgradeRequest{Cluster: *newCluster("v1")}, &got)
			if !errors.Is(err, errBroken) || got.Status == runtimehooksv1.ResponseStatusSuccess {
				t.Errorf("%v, %+v, %T", err, got, failing)
			}
		})
	}
}
