package restplane

import (
	"strconv"
	"sync"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// state is what is kept between the requests of one command.
type state struct {
	mu       sync.Mutex
	lists    map[string]snapshot                    // by the version that they were given
	count    int                                    // of versions and names that were given
	requests map[string]*v1alpha1.KubeconfigRequest // by name
	tenants  map[string]string                      // by their namespaces, of those that were read
}

// snapshot is what a list had, by name.
type snapshot map[string]objectVersion

// objectVersion is which object it was, and how.
type objectVersion struct{ uid, resourceVersion string }

func newState() *state {
	return &state{
		lists: map[string]snapshot{}, requests: map[string]*v1alpha1.KubeconfigRequest{}, tenants: map[string]string{},
	}
}

func (s *state) next() string {
	s.count++
	return strconv.Itoa(s.count)
}

// remember keeps a list until somebody watches from it on, and returns its version.
func (s *state) remember(l snapshot) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.next()
	s.lists[v] = l
	return v
}

// take returns a list once.
func (s *state) take(v string) (snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.lists[v]
	delete(s.lists, v)
	return l, ok
}

// rememberTenant keeps whose namespace one is, if its name is another.
func (s *state) rememberTenant(t *v1alpha1.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenants[t.NamespaceName()] = t.Name
}

// tenant is the one whose namespace is meant.
func (c *call) tenant() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tenants[c.namespace]; t != "" {
		return t
	}
	return c.namespace
}
