package reconciletest

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type stuck struct{ in, out chan struct{} }

func (s stuck) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	close(s.in)
	<-s.out
	return reconcile.Result{}, nil
}

// The stack of a reconciler that hangs is found.
func TestWorkers(t *testing.T) {
	s := stuck{make(chan struct{}), make(chan struct{})}
	defer close(s.out)
	go func() { _, _ = s.Reconcile(t.Context(), reconcile.Request{}) }()
	<-s.in
	if got := reconcilerStacks(); !strings.Contains(got, "stuck.Reconcile(") || strings.Contains(got, "TestWorkers(") {
		t.Errorf("%s", got)
	}
}
