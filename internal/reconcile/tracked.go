package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracked is an object that one run changes, with what is stored of it, so that each write sends only what has changed
// since the one before.
type Tracked[T client.Object] struct {
	object  T
	initial T
	stored  T
}

// Track begins to track an object that was just read.
func Track[T client.Object](o T) *Tracked[T] {
	before := deepCopyOf(o)
	return &Tracked[T]{object: o, initial: before, stored: before}
}

// Write writes what has changed since the last write. See Write of this package.
func (t *Tracked[T]) Write(ctx context.Context, c client.Client) error {
	if err := Write(ctx, c, t.stored, t.object); err != nil {
		return err
	}
	t.stored = deepCopyOf(t.object)
	return nil
}

// Initial returns the object as it was when the run began. It must not be changed.
func (t *Tracked[T]) Initial() T { return t.initial }

// Stored returns the object as it was read or last written. It must not be changed.
func (t *Tracked[T]) Stored() T { return t.stored }
