package kubeconfigrequest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/internal/workload"
)

// world is a plane with a cluster that is ready, and a request. It is fake: tests with it are about what the reconciler
// decides to do, not about what an API server makes of it.
type world struct {
	*Reconciler
	t        *testing.T
	key, crt []byte // of the cluster's authority
	clock    *clocktesting.FakePassiveClock
	events   *recorder

	writes       int // by anybody
	secretsRead  int
	deleted      []*client.DeleteOptions
	appliedRoles []string // in the workload cluster

	failStatus  error // of writing a status
	failSecret  error // of writing a Secret
	unreachable error
	refuses     error // error of applying in the workload cluster
}

// Get returns a client of the workload cluster.
func (w *world) Get(_ context.Context, key client.ObjectKey) (*workload.Cluster, error) {
	if w.unreachable != nil || key.String() != "team/prod" {
		return nil, w.unreachable
	}
	return &workload.Cluster{Client: applying(&w.appliedRoles, w.refuses)}, nil
}

func newWorld(t *testing.T, o *v1alpha1.KubeconfigRequest, more ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(at), events: &recorder{}}
	w.crt, w.key = newPair(t, nil)
	ca, own := newSecrets(t, w.crt, w.key)
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&v1alpha1.KubeconfigRequest{}).
		WithObjects(append(more, o, newWorkloadCluster(), newCluster(), ca, own)...).Build()
	plane := interceptor.NewClient(c, w.interceptors())
	w.Reconciler = &Reconciler{
		Client: plane, Live: plane, Workload: w, Limiter: &fairness.Limiter{PerNamespace: 1, MaxWaiting: 1}, Clock: w.clock, Events: w.events,
	}
	return w
}

// interceptors counts requests to the plane, and lets some of them fail.
func (w *world) interceptors() interceptor.Funcs {
	secret := func(o client.Object) error {
		w.writes++
		if _, ok := o.(*corev1.Secret); ok {
			return w.failSecret
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Secret); ok {
				w.secretsRead++
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := secret(o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := secret(o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes++
			if w.failStatus != nil {
				return w.failStatus
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.writes++
			all := &client.DeleteOptions{}
			w.deleted = append(w.deleted, all.ApplyOptions(opts))
			return c.Delete(ctx, o, opts...)
		},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// run reconciles the request once, and returns when it is to be reconciled again.
func (w *world) run() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: space, Name: "mine"}})
	w.must(err)
	return result.RequeueAfter
}

func (w *world) runErr() error {
	w.t.Helper()
	_, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: space, Name: "mine"}})
	return err
}

// request returns the request as it is now; nil if it is gone.
func (w *world) request() *v1alpha1.KubeconfigRequest {
	w.t.Helper()
	o := &v1alpha1.KubeconfigRequest{}
	err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: space, Name: "mine"}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return o
}

// secret returns a Secret as it is now; nil if there is none.
func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s, err := w.readSecret(w.t.Context(), space, name)
	w.must(err)
	return s
}

func ready(o *v1alpha1.KubeconfigRequest) metav1.Condition {
	if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// expectNotReady checks that there are no credentials, why, and what kstatus makes of it.
func (w *world) expectNotReady(reason, with, want string) {
	w.t.Helper()
	o := w.request()
	c := ready(o)
	if isAnswered(o) || c.Status != metav1.ConditionFalse || c.Reason != reason || c.ObservedGeneration != 1 || !strings.Contains(c.Message, want) {
		w.t.Errorf("the condition is %+v, want %s: %s", c, reason, want)
	}
	if len(o.Status.Conditions) != 2 || !meta.IsStatusConditionTrue(o.Status.Conditions, with) {
		w.t.Errorf("the conditions are %+v, want Ready and %s", o.Status.Conditions, with)
	}
}
