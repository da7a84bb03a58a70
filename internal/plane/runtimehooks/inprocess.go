package runtimehooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxConcurrentCalls bounds the calls of one Go handler that run at the same time, those included
// that nobody waits for any longer. It is above the number of workers of any controller.
const maxConcurrentCalls = 64

// inProcessTarget is a target in this process.
type inProcessTarget struct {
	run   HandlerFunc
	slots chan struct{} // one token for each running call
}

func newInProcessTarget(run HandlerFunc) *inProcessTarget {
	return &inProcessTarget{run: run, slots: make(chan struct{}, maxConcurrentCalls)}
}

// call runs the function in a goroutine of its own, because one that ignores its context
// must not hold up the caller. Such a goroutine is left behind, which is why it only ever
// sees objects of its own, and why slots bound their number.
func (p *inProcessTarget) call(
	ctx context.Context,
	_ *registration,
	forObject client.Object,
	request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ignorableError{fmt.Errorf("waiting for one of %d running calls to end: %w", cap(p.slots), context.Cause(ctx))}
	}
	forObject = forObject.DeepCopyObject().(client.Object)
	done := make(chan error, 1)
	go p.runRecovered(ctx, done, func() error { return p.run(ctx, forObject, request, response) })
	select {
	case err := <-done:
		if err != nil {
			return ignorableError{err}
		}
	case <-ctx.Done():
		return ignorableError{context.Cause(ctx)}
	}
	if response.GetStatus() == "" {
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	}
	// The handler may have answered with memory it goes on using.
	return copyResponse(response, response.DeepCopyObject().(runtimehooksv1.ResponseObject))
}

// runRecovered runs f and reports how it ended, also by a panic or runtime.Goexit, and frees its slot.
func (p *inProcessTarget) runRecovered(ctx context.Context, done chan<- error, f func() error) {
	err := errors.New("it ended its goroutine instead of returning")
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("it panicked: %v", value)
			ctrl.LoggerFrom(ctx).V(4).Info("Extension handler panicked", "stack", string(debug.Stack()))
		}
		<-p.slots
		done <- err
	}()
	err = f()
}
