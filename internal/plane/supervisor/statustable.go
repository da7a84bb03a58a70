package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// healthTimeout bounds one health check of a component.
const healthTimeout = 3 * time.Second

// statusTable holds what is known about each component. Safe for concurrent use.
type statusTable struct {
	clock    clock.PassiveClock
	onChange func([]Status)

	mu     sync.Mutex
	order  []string
	status map[string]Status

	components map[string]Component // never changes
}

func newStatusTable(c clock.PassiveClock, changed func([]Status), components []Component) *statusTable {
	b := &statusTable{clock: c, onChange: changed, status: map[string]Status{}, components: map[string]Component{}}
	for _, comp := range components {
		b.order = append(b.order, comp.Name())
		b.components[comp.Name()] = comp
		b.status[comp.Name()] = Status{Name: comp.Name(), State: Waiting, Since: c.Now()}
	}
	return b
}

func (b *statusTable) set(name string, to State, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setLocked(name, to, message)
}

// compareAndSet moves a component to another state if it is in the expected one.
func (b *statusTable) compareAndSet(name string, from, to State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status[name].State != from {
		return false
	}
	b.setLocked(name, to, "")
	return true
}

// setLocked needs b.mu, which also keeps calls of onChange in order.
func (b *statusTable) setLocked(name string, to State, message string) {
	b.status[name] = Status{Name: name, State: to, Since: b.clock.Now(), Message: message}
	if b.onChange != nil {
		b.onChange(b.listLocked())
	}
}

func (b *statusTable) listLocked() []Status {
	out := make([]Status, 0, len(b.order))
	for _, n := range b.order {
		out = append(out, b.status[n])
	}
	return out
}

// Status lists all components in the order they start.
func (s *Supervisor) Status() []Status {
	s.statuses.mu.Lock()
	defer s.statuses.mu.Unlock()
	return s.statuses.listLocked()
}

// Check says why the named component does not serve now; nil means it does. It calls the health check of
// components that have one, so it is meant for readiness probes.
func (s *Supervisor) Check(ctx context.Context, name string) error {
	s.statuses.mu.Lock()
	st, known := s.statuses.status[name]
	s.statuses.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("there is no component %q", name)
	case st.State != Ready && st.Message != "":
		return fmt.Errorf("%s: %s", st.State, st.Message)
	case st.State != Ready:
		return fmt.Errorf("%s", st.State)
	}
	h, ok := s.statuses.components[name].(HealthChecker)
	if !ok {
		return nil
	}
	return checkHealth(ctx, h)
}

// checkHealth bounds the check itself: a component that hangs is not healthy.
func checkHealth(ctx context.Context, h HealthChecker) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- h.Healthy(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer within %s", healthTimeout)
	}
}
