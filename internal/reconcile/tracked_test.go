package reconcile_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/internal/reconcile"
)

// Each write sends what has changed since the one before, from the version that the one before has made.
func TestTracked(t *testing.T) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	var sent []string
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(o).WithStatusSubresource(o).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			b, _ := p.Data(o)
			sent = append(sent, string(b))
			return c.Patch(ctx, o, p, opts...)
		},
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	tracked := reconcile.Track(o)
	for _, id := range []string{"a", "a", "b"} {
		o.Spec.ProviderID = id
		if err := tracked.Write(t.Context(), api); err != nil {
			t.Fatal(err)
		}
		if got := tracked.Stored().Spec.ProviderID; got != id {
			t.Errorf("stored is %q, want %q", got, id)
		}
	}
	want := []string{
		`{"metadata":{"resourceVersion":"999"},"spec":{"providerID":"a"}}`,
		`{"metadata":{"resourceVersion":"1000"},"spec":{"providerID":"b"}}`,
	}
	if !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if got := tracked.Initial(); got.Spec.ProviderID != "" || got.ResourceVersion != "999" {
		t.Errorf("the beginning is forgotten: %+v", got)
	}
}

// What could not be written is still to be written.
func TestTrackedAfterFailure(t *testing.T) {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	empty := fake.NewClientBuilder().Build()
	tracked := reconcile.Track(o)
	o.Spec.ProviderID = "a"
	if err := tracked.Write(t.Context(), empty); err == nil {
		t.Error("an object that is not there was written")
	}
	if got := tracked.Stored().Spec.ProviderID; got != "" {
		t.Errorf("%q counts as stored", got)
	}
}
