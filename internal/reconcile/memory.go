package reconcile

import "sync"

// Memory is what a reconciler remembers of objects between runs, by a key. It only spares work or delays it: what is
// lost with the process is found out again. The zero value is empty and ready, and safe for concurrent use.
type Memory[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]V
}

// Load returns what is remembered under a key.
func (m *Memory[K, V]) Load(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.entries[key]
	return v, ok
}

// Store remembers a value under a key.
func (m *Memory[K, V]) Store(key K, value V) {
	m.Update(key, func(V, bool) V { return value })
}

// Update replaces what is remembered under a key by what change makes of it, and returns that. No other call comes
// in between, so change must be quick.
func (m *Memory[K, V]) Update(key K, change func(v V, known bool) V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[K]V{}
	}
	v, known := m.entries[key]
	v = change(v, known)
	m.entries[key] = v
	return v
}

// UpdateKnown is Update for what is remembered; it does nothing if nothing is.
func (m *Memory[K, V]) UpdateKnown(key K, change func(v V) V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, known := m.entries[key]; known {
		m.entries[key] = change(v)
	}
}

// Forget drops what is remembered under a key.
func (m *Memory[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}
