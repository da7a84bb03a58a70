package clusterstack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// A problem of a stack is reported as long as it exists, whatever its releases do meanwhile. All else goes on: the
// status says what can be used, and the source is checked again.
func TestReconcileWithProblems(t *testing.T) {
	foreign := newRelease("v3", markReady, func(r *csv1.ClusterStackRelease) {
		r.OwnerReferences[0].UID, r.OwnerReferences[0].Name = "other", "sines"
	})
	waits := condition(csv1.ConditionReady, metav1.ConditionFalse, "it waits")
	invalid := cond{"False", csv1.ReasonNameInvalid, `spec.versions: version "1.0" is not of the form v1 or v0-word.id, for example v3 or v0-sha.abc1234`}
	taken := cond{
		"False", csv1.ReasonNotOurs, "release " + line + "v3 belongs to ClusterStack sines already; delete one of the two, or have them in two namespaces",
	}
	for name, c := range map[string]struct {
		versions []string
		have     []client.Object
		want     cond // of ReleasesSynced and of Ready
		usable   *string
	}{
		"a version is none, and all others are ready": {[]string{"1.0", "v2"}, []client.Object{newRelease("v2", markReady)}, invalid, ptr.To("v2")},
		"a version is none, and another waits": {[]string{"1.0", "v1", "v2"}, []client.Object{newRelease("v1", markReady), newRelease("v2", waits)}, invalid,
			ptr.To("v1")},
		"a version is none, and nothing is ready":     {[]string{"1.0", "v2"}, []client.Object{newRelease("v2", waits)}, invalid, nil},
		"a version is none, and there is nothing":     {[]string{"1.0"}, nil, invalid, nil},
		"one is another's, and all others are ready":  {[]string{"v2", "v3"}, []client.Object{newRelease("v2", markReady), foreign}, taken, ptr.To("v2")},
		"one is another's, and there is nothing else": {[]string{"v3"}, []client.Object{foreign}, taken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newStack(versions(c.versions...))
				o.Status = csv1.ClusterStackStatus{LatestRelease: ptr.To("old"), UsableVersions: ptr.To("old")}
				r := newReconciler(t, t.TempDir(), append(c.have, o)...)
				key := client.ObjectKeyFromObject(o)
				written := ""
				for range 2 {
					got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
					if err != nil || got.RequeueAfter < 10*time.Minute || got.RequeueAfter > 12*time.Minute {
						t.Errorf("%v, %v", got, err)
					}
					if err := r.Client.Get(t.Context(), key, o); err != nil {
						t.Fatal(err)
					}
					if written != "" && written != o.ResourceVersion {
						t.Error("it is written again")
					}
					written = o.ResourceVersion
				}
				for _, name := range []string{csv1.ConditionReleasesSynced, csv1.ConditionReady} {
					if d := cmp.Diff(c.want, conditionsOf(o)[name]); d != "" {
						t.Errorf("%s: %s", name, d)
					}
				}
				if d := cmp.Diff(c.usable, o.Status.UsableVersions); d != "" {
					t.Error(d)
				}
				if (o.Status.LatestRelease != nil) != (c.usable != nil) || ptr.Deref(o.Status.LatestRelease, "") == "old" {
					t.Errorf("the latest is %s", ptr.Deref(o.Status.LatestRelease, "none"))
				}
			})
		})
	}
}
