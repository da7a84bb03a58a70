package tenantplanes

import (
	"fmt"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// notAnswering is said of a plane that hangs.
var notAnswering = fmt.Sprintf("its process does not answer; if that lasts for %s, it is ended and started again", maxSilence)

// notLookedAt is said of a plane that may not be the one it is taken for.
const notLookedAt = "it is ready, and is being looked at"

func (c *child) getState() tenancy.PlaneState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// setState sets how the plane is, and tells if that is new.
func (c *child) setState(phase tenancy.PlanePhase, message string) {
	c.update(func() { c.state = tenancy.PlaneState{Phase: phase, Message: message} })
}

// update changes the plane, and tells if its state is another then. Whoever is told may ask for it.
func (c *child) update(change func()) {
	c.mu.Lock()
	before := c.state
	change()
	changed := before != c.state
	c.mu.Unlock()
	if changed {
		go c.planes.changed(c.namespace)
	}
}

// setEndpoint says where the plane is, or that it is nowhere.
func (c *child) setEndpoint(e *endpoint, pid int) {
	c.update(func() {
		c.endpoint, c.pid = e, pid
		if e != nil {
			c.assess()
		}
	})
}

// setAnswering says whether the plane answers.
func (c *child) setAnswering(answers bool) {
	c.update(func() {
		if c.endpoint == nil {
			return
		}
		if c.assess(); !answers {
			c.state = tenancy.PlaneState{Phase: tenancy.PlaneFailed, Message: notAnswering}
		}
	})
}

func (c *child) accept() {
	c.update(func() {
		c.accepted, c.rejected = true, ""
		if c.endpoint != nil {
			c.assess()
		}
	})
}

func (c *child) reject(reason string) {
	c.update(func() {
		c.accepted, c.rejected = false, reason
		c.assess()
	})
}

// assess sets the state of a plane whose process is ready; the lock is held.
func (c *child) assess() {
	switch {
	case c.rejected != "":
		c.state = tenancy.PlaneState{Phase: tenancy.PlaneLost, Message: c.rejected}
	case !c.accepted:
		c.state = tenancy.PlaneState{Phase: tenancy.PlaneStarting, Message: notLookedAt}
	default:
		c.state = tenancy.PlaneState{Phase: tenancy.PlaneReady}
	}
}

// describe says how the plane is, for its operator.
func (c *child) describe() status.TenantPlane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return status.TenantPlane{
		Namespace: c.namespace, Tenant: c.tenant, PID: c.pid, DataDir: c.dir,
		Ready: c.state.Phase == tenancy.PlaneReady, Phase: string(c.state.Phase), Message: c.state.Message,
	}
}
