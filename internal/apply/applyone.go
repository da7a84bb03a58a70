package apply

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyOne applies one object. kindIsNew says that a definition of the same set brings its kind.
func (a *Applier) applyOne(ctx context.Context, it item, trusted, kindIsNew bool) Result {
	u, change, err := a.applyWithRetry(ctx, it, trusted, kindIsNew)
	if err != nil {
		return Result{Ref: it.ref, Err: explainError("applying", it.ref, err)}
	}
	return Result{Ref: it.ref, Object: u, Change: change}
}

// applyWithRetry applies an object, and tries again while its kind is new and not served: a kind may be
// discovered before it is served, and served by one API server and not yet by the next.
func (a *Applier) applyWithRetry(ctx context.Context, it item, trusted,
	kindIsNew bool) (u *unstructured.Unstructured, change Change, err error) {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 1}
	if kindIsNew {
		backoff.Steps = 7 // 3 seconds
	}
	// With a context that is done already, the function below is never called, and this stays the error.
	err = context.Cause(ctx)
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) { // err says why it ended
		if u, change, err = a.applyOnce(ctx, it, trusted); isNotServed(err) {
			meta.MaybeResetRESTMapper(a.Client.RESTMapper()) // what it remembers may be out of date
			return false, nil
		}
		return true, nil
	})
	return u, change, err
}

// applyOnce reads an object, unless it is trusted, and applies it on the condition that it is still the one that
// was read.
func (a *Applier) applyOnce(ctx context.Context, it item, trusted bool) (*unstructured.Unstructured, Change, error) {
	u := it.object.DeepCopy()
	var live *metav1.PartialObjectMetadata
	if !trusted {
		var err error
		if live, err = a.readOwnedMetadata(ctx, it.ref); err != nil {
			return nil, "", err
		}
	}
	opts := []client.ApplyOption{a.Owner}
	if live != nil {
		u.SetUID(live.UID) // the API server refuses if it is another object by now
	}
	if live != nil || trusted {
		// What is ours is ours in every field of the set, also where somebody else has changed it since.
		opts = append(opts, client.ForceOwnership)
	} else {
		u.SetResourceVersion(NoResourceVersion) // the API server refuses if there is one by now
	}
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		if whose := a.checkOwnershipLost(ctx, it.ref, trusted, err); whose != nil {
			err = whose
		}
		return nil, "", asNotServed(it.ref, err)
	}
	if u.GetDeletionTimestamp() != nil {
		return nil, "", deletingError(it.ref)
	}
	return u, changeOf(trusted, live, u), nil
}

// NoResourceVersion is a resource version that no object has. An apply with it creates an object, or meets a
// conflict if there is one. Without it, an apply to what somebody else has created a moment ago would merge our
// fields, the ownership label among them, into theirs, wherever the two do not contradict each other.
const NoResourceVersion = "9223372036854775807" // revisions of etcd are numbered up to it

// checkOwnershipLost returns an error if an object that was trusted and cannot be changed is somebody else's by
// now: then advice on how to change it would be wrong.
func (a *Applier) checkOwnershipLost(ctx context.Context, ref Ref, trusted bool, err error) error {
	if !trusted || !apierrors.IsInvalid(err) {
		return nil
	}
	if _, err := a.readOwnedMetadata(ctx, ref); errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}

// changeOf says what an apply did, by the resource versions before and after it. The API server does not write,
// and keeps the version, if an apply changes nothing.
func changeOf(trusted bool, before *metav1.PartialObjectMetadata, now *unstructured.Unstructured) Change {
	switch {
	case trusted:
		return Unknown
	case before == nil:
		return Created
	case before.ResourceVersion == now.GetResourceVersion():
		return Unchanged
	}
	return Updated
}
