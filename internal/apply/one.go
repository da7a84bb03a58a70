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
func (a *Applier) applyOne(ctx context.Context, it item, trusted, fresh bool) Result {
	u, change, err := a.put(ctx, it, trusted, fresh)
	if err != nil {
		return Result{Ref: it.ref, Err: explain("applying", it.ref, err)}
	}
	return Result{Ref: it.ref, Object: u, Change: change}
}

func (a *Applier) put(ctx context.Context, it item, trusted, fresh bool) (*unstructured.Unstructured, Change, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, "", err
	}
	u := it.object.DeepCopy()
	var live *metav1.PartialObjectMetadata
	if !trusted {
		var err error
		if live, err = a.lookAtMine(ctx, it.ref); err != nil {
			return nil, "", err
		}
	}
	opts := []client.ApplyOption{a.Owner}
	if live != nil {
		u.SetUID(live.UID) // the API server refuses if it is another object by now
	}
	if live != nil || trusted {
		opts = append(opts, client.ForceOwnership)
	} // What is not there is made without force: if somebody else makes it now, it stays theirs.
	if err := a.send(ctx, u, fresh, opts); err != nil {
		if whose := a.whose(ctx, it.ref, trusted, err); whose != nil {
			err = whose
		}
		return nil, "", err
	}
	if u.GetDeletionTimestamp() != nil {
		return nil, "", deleting(it.ref)
	}
	return u, changed(trusted, live, u), nil
}

// whose says that an object which was trusted and cannot be changed is somebody else's by now: then it is
// not ours to advise about.
func (a *Applier) whose(ctx context.Context, ref Ref, trusted bool, err error) error {
	if !trusted || !apierrors.IsInvalid(err) {
		return nil
	}
	if _, err := a.lookAtMine(ctx, ref); errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}

func changed(trusted bool, before *metav1.PartialObjectMetadata, now *unstructured.Unstructured) Change {
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

// send applies u, which becomes what the server answers. A kind that is fresh may be served by one
// API server and not yet by the next.
func (a *Applier) send(ctx context.Context, u *unstructured.Unstructured, fresh bool, opts []client.ApplyOption) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 1}
	if fresh {
		backoff.Steps = 7 // 3 seconds
	}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
		if meta.IsNoMatchError(last) || apierrors.IsNotFound(last) && !missingNamespace(last) {
			return false, nil
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}
