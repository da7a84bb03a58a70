package instant

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// claims says which managers have seen an object. What is moved from one plane to another is on both for a while, and
// what it stands for must outlive its end on the first. Providers with finalizers need nothing of the kind: what goes
// while its Cluster is paused is left alone.
type claims struct {
	mu       sync.Mutex
	managers int
	by       map[claimed]map[int]bool // by the number of the manager
}

type claimed struct {
	kind kind
	name types.NamespacedName
}

// managerClaims are those of one manager.
type managerClaims struct {
	*claims
	manager int
}

func (c *claims) ofManager() managerClaims {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.managers++
	return managerClaims{c, c.managers}
}

// hold says that the manager's plane has the object.
func (c managerClaims) hold(k kind, name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := claimed{k, name}
	if c.by == nil {
		c.by = map[claimed]map[int]bool{}
	}
	if c.by[key] == nil {
		c.by[key] = map[int]bool{}
	}
	c.by[key][c.manager] = true
}

// release says that the manager's plane has it no more, and reports whether no other plane has it.
func (c managerClaims) release(k kind, name types.NamespacedName) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := claimed{k, name}
	delete(c.by[key], c.manager)
	if len(c.by[key]) > 0 {
		return false
	}
	delete(c.by, key)
	return true
}
