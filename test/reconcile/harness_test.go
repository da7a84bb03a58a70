package reconcile

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
)

// A reconciler that is right passes.
func TestHarnessPasses(t *testing.T) {
	t.Parallel()
	reconciletest.Run(t, api(t), toySubject(none))
}

// Each fault is found by the check that is for it. Most of the time is spent waiting in vain, so all
// of them wait at the same time.
func TestHarnessFinds(t *testing.T) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for f, check := range map[fault]string{
		hasNoFinalizer:           reconciletest.Baseline,
		neverStopsWriting:        reconciletest.Baseline,
		recordsTooLate:           "crash",
		isReadyTooSoon:           "crash",
		isDrivenByEdges:          "missed",
		makesWhatItDoesNotSee:    "stale",
		deletesByName:            "stale",
		removesAnnotations:       "storm",
		writesEachTime:           "quiet",
		asksAgainSoon:            "quiet",
		addsFinalizerOnce:        "stripped",
		makesChildrenOnce:        "stripped",
		doesNotWatch:             "stripped",
		doesNotRestoreLabels:     "stripped",
		doesNotRestoreContent:    "stripped",
		doesNotRestoreStatus:     "stripped",
		doesNotRecover:           "bad",
		doesNotSayWhatIsWrong:    "bad",
		addsFinalizerLast:        "deleted",
		doesNotSayWhatIsInTheWay: "deleted",
	} {
		wg.Go(func() {
			found, err := reconciletest.RunChecks(t.Context(), api(t), toySubject(f), check)
			if err != nil || len(found) != 1 || found[0].Check != check {
				t.Errorf("a reconciler that %s: found %v, %v; want something by %s", f, found, err, check)
				return
			}
			t.Logf("a reconciler that %s: %s", f, found[0])
		})
	}
}

// toySubject is the toy as the harness tests it, with one fault or none.
func toySubject(f fault) reconciletest.Subject {
	port := func(p int32) reconciletest.Action {
		return change(func(o *infrav1.LocalCluster) { o.Spec.ControlPlaneEndpoint.Port = p })
	}
	hold := func(v string) reconciletest.Action {
		return change(func(o *infrav1.LocalCluster) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, "hold", v) })
	}
	s := reconciletest.Subject{
		Setup: func(_ context.Context, mgr ctrl.Manager) error {
			return (&toy{client: mgr.GetClient(), live: mgr.GetAPIReader(), fault: f}).setup(mgr)
		},
		Kinds: []client.Object{&infrav1.LocalCluster{}, &corev1.ConfigMap{}},
		CreateInputs: func(ctx context.Context, c client.Client, namespace string) error {
			o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: toyName}}
			o.Spec.ControlPlaneEndpoint.Port = toyPort
			return c.Create(ctx, o)
		},
		BadInputs: []reconciletest.Fault{{
			Name: "port", Break: port(badPort), Repair: port(toyPort),
			CheckReported: reconciletest.ExpectReason(&infrav1.LocalCluster{}, toyName, "Ready", "BadPort"),
		}},
		DeleteBlockers: []reconciletest.Fault{{
			Name: "a hold", Break: hold("yes"), Repair: hold(""),
			CheckReported: reconciletest.ExpectReason(&infrav1.LocalCluster{}, toyName, "Ready", "Held"),
		}},
	}
	if f != none {
		s.Timeout = 10 * time.Second // it will be waited for
	}
	return s
}

// change patches the toy's object.
func change(f func(*infrav1.LocalCluster)) reconciletest.Action {
	return func(ctx context.Context, c client.Client, namespace string) error {
		o := &infrav1.LocalCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: toyName}, o); err != nil {
			return err
		}
		before := o.DeepCopy()
		f(o)
		return c.Patch(ctx, o, client.MergeFrom(before))
	}
}
