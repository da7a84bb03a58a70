package fairness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of Slots.
var (
	ErrKeyBusy   = errors.New("all slots of this key are taken")
	ErrTotalBusy = errors.New("all slots are taken")
)

// Slots limits how many operations run at once: those of each key, and those of all keys together. The zero key has
// no limit of its own. The fields may not be changed once it is used; its methods may be called concurrently.
type Slots[K comparable] struct {
	PerKey     int           // slots of each key; 0 means any number
	Wait       time.Duration // how long Acquire waits for a slot of its key; 0 means that it does not
	MaxWaiting int           // how many callers of a key may wait for a slot of it; 0 means any number
	// slots of all keys together, for which Acquire waits until its context ends; 0 means any number
	Total int

	mu    sync.Mutex
	byKey map[K]*keySlots
	total chan struct{}
}

// keySlots are the slots of one key. They are kept as long as somebody uses them.
type keySlots struct {
	slots chan struct{}
	users int // those that have a slot, or wait for one
}

// Acquire takes a slot of the key, and then one of all: who waits for others of its key holds no slot that other keys
// need. Whoever has them must call release, once. The error is ErrKeyBusy, or ErrTotalBusy with that of the context,
// or the context's alone if it is cancelled while Acquire waits for a slot of the key.
func (s *Slots[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	leave, err := s.acquireKey(ctx, key)
	if err != nil {
		return nil, err
	}
	total := s.totalSlots()
	if total == nil {
		return leave, nil
	}
	select {
	case total <- struct{}{}:
		return func() { <-total; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("%w: %w", ErrTotalBusy, ctx.Err())
	}
}

func (s *Slots[K]) totalSlots() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total == nil && s.Total > 0 {
		s.total = make(chan struct{}, s.Total)
	}
	return s.total
}

func (s *Slots[K]) acquireKey(ctx context.Context, key K) (release func(), err error) {
	var none K
	if key == none || s.PerKey == 0 {
		return func() {}, nil
	}
	mine := s.enter(key)
	if mine == nil {
		return nil, ErrKeyBusy
	}
	release = func() { <-mine.slots; s.leave(key) }
	select {
	case mine.slots <- struct{}{}:
		return release, nil
	default:
	}
	if s.Wait == 0 {
		s.leave(key)
		return nil, ErrKeyBusy
	}
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	select {
	case mine.slots <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		s.leave(key)
		// Only the caller cancels; a deadline may be ours, which means busy.
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, ErrKeyBusy
	}
}

// enter counts a user of the key, or returns nil if too many of it wait.
func (s *Slots[K]) enter(key K) *keySlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.byKey[key]
	if mine == nil {
		mine = &keySlots{slots: make(chan struct{}, s.PerKey)}
		if s.byKey == nil {
			s.byKey = map[K]*keySlots{}
		}
		s.byKey[key] = mine
	}
	if s.MaxWaiting > 0 && mine.users >= s.PerKey+s.MaxWaiting {
		return nil
	}
	mine.users++
	return mine
}

// leave uncounts a user, and forgets the key with its last one, so that the map does not grow for ever.
func (s *Slots[K]) leave(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key].users--; s.byKey[key].users == 0 {
		delete(s.byKey, key)
	}
}
