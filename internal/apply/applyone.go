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

// applyOne applies one object. Its kind is fresh if a definition of the same set brings it.
func (a *Applier) applyOne(ctx context.Context, it item, trusted, kindIsNew bool) Result {
	u, change, err := a.applyWithRetry(ctx, it, trusted, kindIsNew)
	if err != nil {
		return Result{Ref: it.ref, Err: explainError("applying", it.ref, err)}
	}
	return Result{Ref: it.ref, Object: u, Change: change}
}

// applyWithRetry looks at an object and applies it, again while its kind is fresh and not served: it may be discovered before
// it is served, and served by one API server and not yet by the next.
func (a *Applier) applyWithRetry(ctx context.Context, it item, trusted, kindIsNew bool) (u *unstructured.Unstructured, change Change, err error) {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 1}
	if kindIsNew {
		backoff.Steps = 7 // 3 seconds
	}
	err = context.Cause(ctx)
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) { // err is why it ended
		if u, change, err = a.applyOnce(ctx, it, trusted); isNotServed(err) {
			meta.MaybeResetRESTMapper(a.Client.RESTMapper()) // it may have lost that version
			return false, nil
		}
		return true, nil
	})
	return u, change, err
}

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

// NoResourceVersion is a resource version that no object has. An apply with it makes an object, or meets a conflict
// if there is one. Without it, an apply to what somebody else has made a moment ago would merge our fields, the
// label that it is ours among them, into theirs, wherever the two do not contradict each other.
const NoResourceVersion = "9223372036854775807" // revisions of etcd are numbered up to it

// checkOwnershipLost says that an object which was trusted and cannot be changed is somebody else's by now: then it is
// not ours to advise about.
func (a *Applier) checkOwnershipLost(ctx context.Context, ref Ref, trusted bool, err error) error {
	if !trusted || !apierrors.IsInvalid(err) {
		return nil
	}
	if _, err := a.readOwnedMetadata(ctx, ref); errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}

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
