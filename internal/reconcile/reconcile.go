// Package reconcile has what all our reconcilers have in common: phases that run in order, three kinds of errors,
// and a summary of conditions.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/polder-kaas/polder/internal/apierror"
)

// Phase is one part of reconciling an object. It reads the actual state and acts; it may run again at any time.
// Its error is one of three kinds: made by Wait, made by Terminal, or any other, which is retried with backoff.
type Phase[S any] func(ctx context.Context, scope S) error

// Run runs phases in order up to the first error and returns what the controller is to do.
func Run[S any](ctx context.Context, scope S, phases ...Phase[S]) (ctrl.Result, error) {
	for _, p := range phases {
		err := p(ctx, scope)
		var w *waitError
		switch {
		case errors.As(err, &w):
			return ctrl.Result{RequeueAfter: w.requeueAfter}, nil
		case err != nil:
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// waitError ends a reconciliation without a failure.
type waitError struct {
	requeueAfter time.Duration
	reason       string
}

func (w *waitError) Error() string { return "waiting: " + w.reason }

// Wait ends a reconciliation without a failure: something is not there yet. If after is 0, there is no requeue; a
// watch triggers the next reconciliation.
func Wait(after time.Duration, format string, args ...any) error {
	return &waitError{requeueAfter: after, reason: fmt.Sprintf(format, args...)}
}

// IsWait says whether an error was made by Wait.
func IsWait(err error) bool {
	var w *waitError
	return errors.As(err, &w)
}

// Terminal marks an error that stays until an input changes; it is not retried.
func Terminal(err error) error { return ctrlreconcile.TerminalError(err) }

// Finish ends a run with the result and the error of its phases, and the error of writing what they changed. An object
// that is gone needs no status. A conflict is no failure, but a reason to run again soon, with a newer version than the
// cache had.
func Finish(result ctrl.Result, err, write error) (ctrl.Result, error) {
	err = joinWriteError(err, apierror.IgnoreNotFound(write))
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return result, nil
}

// conflictDelay gives the cache time to catch up.
const conflictDelay = 50 * time.Millisecond

// joinWriteError joins the error of the phases with that of writing the status. A write that failed is retried,
// also if the phases ended with a terminal error.
func joinWriteError(err, write error) error {
	if write != nil && errors.Is(err, ctrlreconcile.TerminalError(nil)) {
		return write
	}
	return errors.Join(err, write)
}
