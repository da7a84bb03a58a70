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
	firstPause = time.Second
	longPause  = 15 * time.Second
)

// refusedFor is how long a plane that did answer may refuse to. An API server that has just started, or one of several
// behind an address, may not know yet who has which rights.
const refusedFor = 30 * time.Second

// objectSource is where the states of objects come from.
type objectSource interface {
	list(ctx context.Context) (*unstructured.UnstructuredList, error)
	watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
}

// observer is told of objects. It ends the following by saying that it is done.
type observer interface {
	seen(u *unstructured.Unstructured) (done bool)
	gone(key string) (done bool)
	troubled(err error) // the plane does not answer for a while
}

// follower tells an observer of all objects of a source, and of their changes, until that is done. A watch that
// ends, or is too old, is begun anew from a list, so that nothing is missed but states in between.
type follower struct {
	source   objectSource
	observer observer
	known    map[string]bool // keys of objects that were seen; those to be seen may be put in
	pause    time.Duration
	allowed  bool      // it could list and watch once
	refused  time.Time // since when; zero if it is not
}

func keyOf(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// run ends with an error if the context does, if the plane cannot be reached at first, or if it refuses.
func (f *follower) run(ctx context.Context) error {
	f.pause = firstPause
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
		case err != nil && (!began || !f.passes(err)):
			return err
		case err != nil:
			f.observer.troubled(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.pause):
			f.pause = min(2*f.pause, longPause)
		}
	}
}

// passes says whether it is worth asking again.
func (f *follower) passes(err error) bool {
	if !refuses(err) {
		return passes(err)
	}
	if f.refused.IsZero() {
		f.refused = time.Now()
	}
	return f.allowed && time.Since(f.refused) < refusedFor
}

// list tells of all objects there are, and of those that are there no more.
func (f *follower) list(ctx context.Context) (version string, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	l, err := f.source.list(ctx)
	if err != nil {
		return "", false, err
	}
	before := f.known
	f.known = map[string]bool{}
	for i := range l.Items {
		u := &l.Items[i]
		f.known[keyOf(u)] = true
		delete(before, keyOf(u))
		if f.observer.seen(u) {
			return "", true, nil
		}
	}
	for key := range before {
		if f.observer.gone(key) {
			return "", true, nil
		}
	}
	return l.GetResourceVersion(), false, nil
}

// watch tells of changes until the watch ends, which is no error.
func (f *follower) watch(ctx context.Context, version string) (done bool, err error) {
	w, err := f.source.watch(ctx, version)
	if err != nil && !isOld(err) {
		return false, err
	}
	f.allowed, f.refused = true, time.Time{}
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
				if err := apierrors.FromObject(e.Object); !isOld(err) {
					return false, err
				}
				return false, nil
			}
			if f.take(e) {
				return true, nil
			}
		}
	}
}

func (f *follower) take(e watch.Event) (done bool) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Bookmark {
		return false
	}
	f.pause = firstPause // it works
	if e.Type == watch.Deleted {
		delete(f.known, keyOf(u))
		return f.observer.gone(keyOf(u))
	}
	f.known[keyOf(u)] = true
	return f.observer.seen(u)
}
