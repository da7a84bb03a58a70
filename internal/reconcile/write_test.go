package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/internal/reconcile"
)

// TestWrite checks which requests are made; that they do what they should is for tests with an API server.
func TestWrite(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   []string
	}{
		"nothing":  {func(*corev1.Node) {}, nil},
		"spec":     {func(n *corev1.Node) { n.Spec.ProviderID = "a" }, []string{`{"metadata":{"resourceVersion":"999"},"spec":{"providerID":"a"}}`}},
		"metadata": {func(n *corev1.Node) { n.Finalizers = nil }, []string{`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`}},
		"status":   {func(n *corev1.Node) { n.Status.Phase = "b" }, []string{`status {"metadata":{"resourceVersion":"999"},"status":{"phase":"b"}}`}},
		"both": {
			func(n *corev1.Node) { n.Spec.ProviderID, n.Status.Phase = "a", "b" },
			[]string{`{"metadata":{"resourceVersion":"999"},"spec":{"providerID":"a"}}`, `status {"metadata":{"resourceVersion":"1000"},"status":{"phase":"b"}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{"example.com/f"}}}
			var asked []string
			api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(before).WithStatusSubresource(before).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					b, _ := p.Data(o)
					asked = append(asked, string(b))
					return c.Patch(ctx, o, p, opts...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					b, _ := p.Data(o)
					asked = append(asked, sub+" "+string(b))
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			c.change(after)
			if err := reconcile.Write(t.Context(), api, before, after); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asked, c.want) {
				t.Errorf("asked %q, want %q", asked, c.want)
			}
			stored := &corev1.Node{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(before), stored); err != nil {
				t.Fatal(err)
			}
			if after.ResourceVersion != stored.ResourceVersion {
				t.Errorf("version %s, and %s is stored", after.ResourceVersion, stored.ResourceVersion)
			}
		})
	}
}

// With its last finalizer an object is gone, and has no status that could be written.
func TestWriteTheEnd(t *testing.T) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{"example.com/f"}}}
	api := fake.NewClientBuilder().WithObjects(o).WithStatusSubresource(o).Build()
	if err := errors.Join(api.Delete(t.Context(), o), api.Get(t.Context(), client.ObjectKeyFromObject(o), o)); err != nil {
		t.Fatal(err)
	}
	after := o.DeepCopy()
	after.Finalizers, after.Status.Phase = nil, "b"
	if err := reconcile.Write(t.Context(), api, o, after); err != nil {
		t.Error(err)
	}
}

// What was made from an older version is not written: it would undo what others wrote.
func TestWriteOfSomethingOlder(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"spec":   func(n *corev1.Node) { n.Spec.ProviderID = "a" },
		"status": func(n *corev1.Node) { n.Status.Phase = "b" },
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			api := fake.NewClientBuilder().WithObjects(o).WithStatusSubresource(o).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			older, after := o.DeepCopy(), o.DeepCopy()
			o.Labels = map[string]string{"a": "b"}
			if err := api.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			change(after)
			if err := reconcile.Write(t.Context(), api, older, after); !apierrors.IsConflict(err) {
				t.Errorf("error %v, want a conflict", err)
			}
			if after.ResourceVersion != older.ResourceVersion {
				t.Errorf("version %s of what was not written", after.ResourceVersion)
			}
		})
	}
}
