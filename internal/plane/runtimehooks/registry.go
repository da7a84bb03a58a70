package runtimehooks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

// ErrNotReady is returned by everything that needs WarmUp before it.
var ErrNotReady = errors.New("extension handlers are not warmed up yet")

// registry holds all handlers by name. Each change is made as a whole or not at all.
type registry struct {
	mu    sync.RWMutex
	ready bool
	items map[string]*registration
}

func (r *registry) isReady() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ready
}

// warmUp adds the first registrations and makes the registry ready.
func (r *registry) warmUp(registrations []*registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return errors.New("they are warmed up already")
	}
	if err := r.checkNameConflicts(registrations); err != nil {
		return err
	}
	r.put(registrations)
	r.ready = true
	return nil
}

// replace exchanges all registrations of an owner.
func (r *registry) replace(owner string, registrations []*registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		return ErrNotReady
	}
	if err := r.checkNameConflicts(registrations); err != nil {
		return err
	}
	for name, item := range r.items {
		if item.owner == owner {
			delete(r.items, name)
		}
	}
	r.put(registrations)
	return nil
}

// add adds a registration under a name nobody uses, ready or not.
func (r *registry) add(one *registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held, ok := r.items[one.name]; ok {
		return fmt.Errorf("the name is taken by %s", held.owner)
	}
	r.items[one.name] = one
	return nil
}

// checkReplace returns the error that replace would return for a name that is taken.
func (r *registry) checkReplace(registrations []*registration) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.checkNameConflicts(registrations)
}

// list returns the registrations for a hook, sorted by name.
func (r *registry) list(hook runtimecatalog.GroupHook) ([]*registration, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.ready {
		return nil, ErrNotReady
	}
	var found []*registration
	for _, item := range r.items {
		if item.hook.GroupHook() == hook {
			found = append(found, item)
		}
	}
	slices.SortFunc(found, func(a, b *registration) int { return cmp.Compare(a.name, b.name) })
	return found, nil
}

func (r *registry) get(name string) (*registration, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.ready {
		return nil, ErrNotReady
	}
	item, ok := r.items[name]
	if !ok {
		return nil, errors.New("no such handler is registered")
	}
	return item, nil
}

// checkNameConflicts refuses names that another owner has. It expects mu to be held. Registrations of one change
// may clash among themselves too: two ExtensionConfigs can claim one name in their status.
func (r *registry) checkNameConflicts(registrations []*registration) error {
	owners := map[string]string{}
	for _, one := range registrations {
		owner, ok := owners[one.name]
		if held, found := r.items[one.name]; found {
			owner, ok = held.owner, true
		}
		if ok && owner != one.owner {
			return fmt.Errorf("handler %q is taken by %s", one.name, owner)
		}
		owners[one.name] = one.owner
	}
	return nil
}

// put expects mu to be held and the names to be free of conflicts.
func (r *registry) put(registrations []*registration) {
	for _, one := range registrations {
		r.items[one.name] = one
	}
}
