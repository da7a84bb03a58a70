package cli

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Pauses before objects are listed again, after a watch that ended.
const (
	minBackoff = time.Second
	maxBackoff = 15 * time.Second
)

// maxRefusedTime is how long a plane that did answer may refuse to. An API server that has just started, or one of several
// behind an address, may not know yet who has which rights.
const maxRefusedTime = 30 * time.Second

// objectSource is where the states of objects come from.
type objectSource interface {
	list(ctx context.Context) (*unstructured.UnstructuredList, error)
	watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
}

// observer is told of objects. It ends the following by saying that it is done.
type observer interface {
	onObject(u *unstructured.Unstructured) (done bool)
	onDelete(key string) (done bool)
	onError(err error) // the plane does not answer for a while
}

// follower tells an observer of all objects of a source, and of their changes, until that is done. A watch that
// ends, or is too old, is begun anew from a list, so that nothing is missed but states in between.
type follower struct {
	source        objectSource
	observer      observer
	knownKeys     map[string]bool // keys of objects that were seen; those to be seen may be put in
	backoff       time.Duration
	succeededOnce bool      // it could list and watch once
	refusedSince  time.Time // since when; zero if it is not
}

func objectKey(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// run ends with an error if the context does, if the plane cannot be reached at first, or if it refuses.
func (f *follower) run(ctx context.Context) error {
	f.backoff = minBackoff
	for began := false; ; {
		version, done, err := f.list(ctx)
		if err == nil && !done {
			began = true
			done, err = f.watch(ctx, version)
		}
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!began || !f.shouldRetry(err)):
			return err
		case err != nil:
			f.observer.onError(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.backoff):
			f.backoff = min(2*f.backoff, maxBackoff)
		}
	}
}

// shouldRetry says whether it is worth asking again.
func (f *follower) shouldRetry(err error) bool {
	if !isAccessDenied(err) {
		return isTransient(err)
	}
	if f.refusedSince.IsZero() {
		f.refusedSince = time.Now()
	}
	return f.succeededOnce && time.Since(f.refusedSince) < maxRefusedTime
}

// list tells of all objects there are, and of those that are there no more.
func (f *follower) list(ctx context.Context) (version string, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l, err := f.source.list(ctx)
	if err != nil {
		return "", false, err
	}
	before := f.knownKeys
	f.knownKeys = map[string]bool{}
	for i := range l.Items {
		u := &l.Items[i]
		f.knownKeys[objectKey(u)] = true
		delete(before, objectKey(u))
		if f.observer.onObject(u) {
			return "", true, nil
		}
	}
	for key := range before {
		if f.observer.onDelete(key) {
			return "", true, nil
		}
	}
	return l.GetResourceVersion(), false, nil
}

// watch tells of changes until the watch ends, which is no error.
func (f *follower) watch(ctx context.Context, version string) (done bool, err error) {
	w, err := f.source.watch(ctx, version)
	if err != nil && !isExpired(err) {
		return false, err
	}
	f.succeededOnce, f.refusedSince = true, time.Time{}
	if err != nil {
		return false, nil
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
			if e.Type == watch.Error {
				if err := apierrors.FromObject(e.Object); !isExpired(err) {
					return false, err
				}
				return false, nil
			}
			if f.handleEvent(e) {
				return true, nil
			}
		}
	}
}

func (f *follower) handleEvent(e watch.Event) (done bool) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Bookmark {
		return false
	}
	f.backoff = minBackoff // it works
	if e.Type == watch.Deleted {
		delete(f.knownKeys, objectKey(u))
		return f.observer.onDelete(objectKey(u))
	}
	f.knownKeys[objectKey(u)] = true
	return f.observer.onObject(u)
}
