package quota

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// reservationTime is how long a request may take from its check until it is stored: as long as the API server lets one
// take.
const reservationTime = time.Minute

// Reservations remember what requests were let in and are not stored yet, so that many at the same time do not get more
// than there is. A request that the API server tries again, because something else of the object changed meanwhile,
// takes the place of its first try: a count that each try adds to would run away.
type Reservations struct {
	Clock clock.PassiveClock

	mu         sync.Mutex
	namespaces map[string]*reserved
}

// reserved are the reservations of one namespace, by the names of clusters.
type reserved struct {
	mu    sync.Mutex
	names map[string]reservation
}

type reservation struct {
	usage      corev1.ResourceList
	generation int64 // of the cluster when it was asked for; 0 if it was not there
	until      time.Time
}

// Stored is a cluster as it is stored.
type Stored struct {
	Usage      corev1.ResourceList
	Generation int64
}

// Reserve calls fits with what all other clusters of a namespace ask for, and reserves what this one wants if fits
// returns true. want has the generation that it is a change of. read returns what is stored. Requests of a namespace
// wait for each other.
func (r *Reservations) Reserve(ctx context.Context, namespace, name string, want Stored,
	read func(context.Context) (map[string]Stored, error), fits func(others corev1.ResourceList) bool) error {
	n := r.of(namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	stored, err := read(ctx)
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	for k, v := range n.names {
		s, there := stored[k]
		if now.After(v.until) || there && v.isOver(s.Generation) || !there && v.generation > 0 {
			delete(n.names, k)
		}
	}
	others := corev1.ResourceList{}
	for k, v := range stored {
		if k != name {
			addTo(others, larger(v.Usage, n.names[k].usage))
		}
	}
	for k, v := range n.names {
		if _, there := stored[k]; !there && k != name {
			addTo(others, v.usage)
		}
	}
	if fits(others) {
		n.names[name] = reservation{want.Usage, want.Generation, now.Add(reservationTime)}
	}
	return nil
}

// Observe is told that a cluster is stored with a generation, for one that is being deleted: nobody sees it later. What
// is asked for beyond that generation stays reserved, since the deletion may fail.
func (r *Reservations) Observe(namespace, name string, generation int64) {
	n := r.of(namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names[name].isOver(generation) {
		delete(n.names, name)
	}
}

// isOver reports whether a request has ended if its cluster is stored with this generation: it is stored with the next
// one, or is checked again on top of the one that came before it.
func (r reservation) isOver(stored int64) bool { return stored > r.generation }

func (r *Reservations) of(namespace string) *reserved {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.namespaces == nil {
		r.namespaces = map[string]*reserved{}
	}
	if r.namespaces[namespace] == nil {
		r.namespaces[namespace] = &reserved{names: map[string]reservation{}}
	}
	return r.namespaces[namespace]
}

// larger returns the larger amount for each name.
func larger(a, b corev1.ResourceList) corev1.ResourceList {
	out := a.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, q := range b {
		if have := out[name]; q.Cmp(have) > 0 {
			out[name] = q.DeepCopy()
		}
	}
	return out
}

// addTo adds amounts to a sum.
func addTo(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name].DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}
