package customernamespace

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/internal/quota"
)

func TestReconcile(t *testing.T) {
	changed := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "polder-default"}}
	for name, c := range map[string]struct {
		labels  map[string]string
		ending  bool
		there   []client.Object
		want    *corev1.ResourceQuota // nil if there is to be none
		changes int
	}{
		"a customer's":                   {labels: map[string]string{"polder.dev/customer": ""}, want: quota.Default("a"), changes: 1},
		"nobody's":                       {labels: map[string]string{"polder.dev/quota": "x"}},
		"one with a quota of its own":    {labels: map[string]string{"polder.dev/customer": "acme", "polder.dev/quota": "own"}},
		"one whose quota was changed":    {labels: map[string]string{"polder.dev/customer": "acme"}, there: []client.Object{changed}, want: changed},
		"one that is being deleted":      {labels: map[string]string{"polder.dev/customer": "acme"}, ending: true},
		"one that is not there any more": {},
	} {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: c.labels, Finalizers: []string{"x/y"}}}
			if c.ending {
				ns.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
			}
			objects := c.there
			if c.labels != nil {
				objects = append(objects, ns)
			}
			writes := 0
			stored := newStore(objects...)
			r := &Reconciler{Live: stored, Client: interceptor.NewClient(stored, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					writes++
					return c.Create(ctx, o, opts...)
				},
			})}
			for range 2 { // the second time there is nothing to do
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}}); err != nil {
					t.Fatal(err)
				}
			}
			got := &corev1.ResourceQuota{}
			err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(changed), got)
			switch {
			case c.want == nil && !apierrors.IsNotFound(err):
				t.Errorf("%+v, %v", got, err)
			case c.want != nil && err != nil:
				t.Error(err)
			case c.want != nil:
				if d := cmp.Diff(c.want.Spec, got.Spec); d != "" {
					t.Error(d)
				}
			}
			if writes != c.changes {
				t.Errorf("%d writes", writes)
			}
		})
	}
}

// A quota is not made for a namespace that the cache alone takes for a customer's.
func TestCacheIsLate(t *testing.T) {
	was := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"polder.dev/customer": ""}}}
	for name, live := range map[string]client.WithWatch{
		"it has no label any more": newStore(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}),
		"it is gone":               newStore(),
	} {
		t.Run(name, func(t *testing.T) {
			cached := newStore(was.DeepCopy())
			r := &Reconciler{Client: cached, Live: live}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			var l corev1.ResourceQuotaList
			if err := cached.List(t.Context(), &l); err != nil || len(l.Items) > 0 {
				t.Errorf("%+v, %v", l.Items, err)
			}
		})
	}
}

// newStore is an API server that can be asked for namespaces by their name.
func newStore(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(objects...).
		WithIndex(&corev1.Namespace{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
}

// What has become of the namespace meanwhile is no failure.
func TestCreateComesTooLate(t *testing.T) {
	ending := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "polder-default", nil)
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	other := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "polder-default", nil)
	for name, c := range map[string]struct {
		err   error
		fails bool
	}{
		"it is being deleted":  {ending, false},
		"it is gone":           {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), false},
		"somebody was faster":  {apierrors.NewAlreadyExists(schema.GroupResource{Resource: "resourcequotas"}, "polder-default"), false},
		"something else fails": {other, true},
	} {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"polder.dev/customer": ""}}}
			r := &Reconciler{Live: newStore(ns), Client: interceptor.NewClient(newStore(ns), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.err },
			})}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}}); (err != nil) != c.fails {
				t.Error(err)
			}
		})
	}
}
