package world

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// maxRecentEvents is how many changes a watch may be behind before it must begin anew.
const maxRecentEvents = 32

// id is the key of an object. No two kinds have the same resource.
type id struct{ resource, namespace, name string }

// isInResource says that an object is of a resource and a namespace, "" being all of them.
func (i id) isInResource(resource, namespace string) bool {
	return i.resource == resource && (namespace == "" || i.namespace == namespace)
}

// event is one change.
type event struct {
	id        id
	version   uint64
	eventType string // ADDED, MODIFIED or DELETED
	object    []byte
}

// store has the objects of one cluster, as JSON: most are served more often than they are looked into.
type store struct {
	mu       sync.Mutex
	version  uint64
	objects  map[id][]byte
	recent   []event
	watchers map[chan struct{}]struct{}
	closed   chan struct{} // closes with the cluster
}

func newStore() *store {
	return &store{version: 1, objects: map[id][]byte{}, watchers: map[chan struct{}]struct{}{}, closed: make(chan struct{})}
}

func (s *store) close() { close(s.closed) }

// Errors of changes.
var (
	errNotFound      = errors.New("there is no such object")
	errAlreadyExists = errors.New("there is such an object already")
	errConflict      = errors.New("the object has changed since")
)

// get returns an object; nil: there is none.
func (s *store) get(i id) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[i]
}

// list returns all objects of a resource, in the order of their names, and the version of the store.
func (s *store) list(resource, namespace string) (objects [][]byte, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []id
	for i := range s.objects {
		if i.isInResource(resource, namespace) {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b id) int { return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name)) })
	for _, i := range ids {
		objects = append(objects, s.objects[i])
	}
	return objects, s.version
}

// change replaces an object by what f makes of it; nil stands for no object, before and after. What stays the same is
// not written.
func (s *store) change(i id, f func(old map[string]any) (map[string]any, error)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.objects[i]
	var old map[string]any
	if was != nil {
		if err := json.Unmarshal(was, &old); err != nil {
			return nil, err
		}
	}
	made, err := f(old)
	switch {
	case err != nil:
		return nil, err
	case made == nil && was == nil:
		return nil, errNotFound
	case made == nil:
		s.recordEvent(event{id: i, eventType: "DELETED", object: was})
		return was, nil
	}
	setServerFields(made, old, i)
	if reflect.DeepEqual(made, old) {
		return was, nil
	}
	u := unstructured.Unstructured{Object: made}
	u.SetResourceVersion(strconv.FormatUint(s.version+1, 10))
	b, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("storing %s: %w", i.name, err)
	}
	kind := "MODIFIED"
	if was == nil {
		kind = "ADDED"
	}
	s.recordEvent(event{id: i, eventType: kind, object: b})
	return b, nil
}

// setServerFields sets the metadata that only the server may set.
func setServerFields(made, old map[string]any, i id) {
	u, was := unstructured.Unstructured{Object: made}, unstructured.Unstructured{Object: old}
	u.SetName(i.name)
	u.SetNamespace(i.namespace)
	unstructured.RemoveNestedField(made, "metadata", "managedFields")
	if old == nil {
		u.SetUID(uuid.NewUUID())
		_ = unstructured.SetNestedField(made, time.Now().UTC().Format(time.RFC3339), "metadata", "creationTimestamp") // metadata is an object: the name was set
		return
	}
	u.SetUID(was.GetUID())
	u.SetCreationTimestamp(was.GetCreationTimestamp())
	u.SetResourceVersion(was.GetResourceVersion())
}

// recordEvent carries out the change of an event, keeps the event and wakes all watches. The lock must be held.
func (s *store) recordEvent(e event) {
	s.version++
	e.version = s.version
	if e.eventType == "DELETED" {
		delete(s.objects, e.id)
	} else {
		s.objects[e.id] = e.object
	}
	if len(s.recent) == maxRecentEvents {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, e)
	for w := range s.watchers {
		select {
		case w <- struct{}{}:
		default: // a signal is waiting already
		}
	}
}

// eventsSince are the events after a version; ok is false if they are no longer known.
func (s *store) eventsSince(version uint64, resource, namespace string) (events []event, now uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version > s.version || version+uint64(len(s.recent)) < s.version {
		return nil, s.version, false
	}
	for _, e := range s.recent {
		if e.version > version && e.id.isInResource(resource, namespace) {
			events = append(events, e)
		}
	}
	return events, s.version, true
}

// subscribe returns a channel that signals changes until stop is called.
func (s *store) subscribe() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, c)
	}
}
