// Package follow lists and watches objects until somebody has seen enough of them.
package follow

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/polder-kaas/polder/internal/cli/connect"
)

// Pauses before objects are listed again, after a watch that ended.
const (
	minBackoff = time.Second
	maxBackoff = 15 * time.Second
)

// maxRefusedTime is how long a plane that did answer may refuse to. An API server that has just started, or one of
// several behind an address, may not know yet who has which rights.
const maxRefusedTime = 30 * time.Second

// Source is where the states of objects come from.
type Source interface {
	// List reads all of them.
	List(ctx context.Context) (*unstructured.UnstructuredList, error)
	// Watch tells of what changes after a version, which is that of a list.
	Watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
}

// Observer is told of objects, by one goroutine. It ends the following by saying that it is done.
type Observer interface {
	// OnObject is told of an object as it is now, which may be as it was.
	OnObject(u *unstructured.Unstructured) (done bool)
	// OnDelete is told the ObjectKey of one that is there no more.
	OnDelete(key string) (done bool)
	// OnError is told that the plane does not answer for a while; it is asked again.
	OnError(err error)
}

// Follower tells an observer of all objects of a source, and of their changes, until that is done. A watch that
// ends, or is too old, is begun anew from a list, so that nothing is missed but states in between.
type Follower struct {
	Source   Source
	Observer Observer
	Now      func() time.Time
	// keys of objects that were seen; of those put in, the observer is told if they are not there
	KnownKeys     map[string]bool
	backoff       time.Duration
	succeededOnce bool      // it could list and watch once
	refusedSince  time.Time // since when; zero if it is not
}

// ObjectKey is NAMESPACE/NAME of an object, and /NAME where it has no namespace.
func ObjectKey(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// Run follows until the observer is done. It ends with an error if the context does, if the plane cannot be reached at
// first, or if it refuses. A Follower runs once.
func (f *Follower) Run(ctx context.Context) error {
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
			f.Observer.OnError(err)
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
func (f *Follower) shouldRetry(err error) bool {
	if !IsAccessDenied(err) {
		return isTransient(err)
	}
	if f.refusedSince.IsZero() {
		f.refusedSince = f.Now()
	}
	return f.succeededOnce && f.Now().Sub(f.refusedSince) < maxRefusedTime
}

// list tells of all objects there are, and of those that are there no more.
func (f *Follower) list(ctx context.Context) (version string, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	l, err := f.Source.List(ctx)
	if err != nil {
		return "", false, err
	}
	before := f.KnownKeys
	f.KnownKeys = map[string]bool{}
	for i := range l.Items {
		u := &l.Items[i]
		f.KnownKeys[ObjectKey(u)] = true
		delete(before, ObjectKey(u))
		if f.Observer.OnObject(u) {
			return "", true, nil
		}
	}
	for key := range before {
		if f.Observer.OnDelete(key) {
			return "", true, nil
		}
	}
	return l.GetResourceVersion(), false, nil
}

// watch tells of changes until the watch ends, which is no error.
func (f *Follower) watch(ctx context.Context, version string) (done bool, err error) {
	w, err := f.Source.Watch(ctx, version)
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

// handleEvent keeps KnownKeys as the API server has it, so that a later list shows what was deleted while nobody
// watched.
func (f *Follower) handleEvent(e watch.Event) (done bool) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Bookmark {
		return false
	}
	f.backoff = minBackoff // it works
	if e.Type == watch.Deleted {
		delete(f.KnownKeys, ObjectKey(u))
		return f.Observer.OnDelete(ObjectKey(u))
	}
	f.KnownKeys[ObjectKey(u)] = true
	return f.Observer.OnObject(u)
}
