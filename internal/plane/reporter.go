package plane

import (
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// statusReporter keeps the status file up to date. A status that cannot be written (a full disk) is
// worth a warning, not an outage.
type statusReporter struct {
	dir   string
	clock clock.PassiveClock
	log   *slog.Logger

	mu sync.Mutex
	s  status.Status
}

func newStatusReporter(dir string, c clock.PassiveClock, log *slog.Logger, s status.Status) *statusReporter {
	r := &statusReporter{dir: dir, clock: c, log: log, s: s}
	r.update(func(*status.Status) {})
	return r
}

func (r *statusReporter) update(change func(*status.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.s)
	if err := status.Write(r.dir, r.s); err != nil {
		r.log.Warn("the status file is out of date", "error", err)
	}
}

func (r *statusReporter) get() status.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}

func (r *statusReporter) setComponents(cs []supervisor.Status) {
	r.update(func(s *status.Status) { s.Components = cs })
}

func (r *statusReporter) setBackup(b status.Backup) {
	r.update(func(s *status.Status) { s.Backup = &b })
}

// setLogin records whose tokens are believed, if there is a file that says so.
func (r *statusReporter) setLogin(l status.Login) {
	if l.File != "" {
		r.update(func(s *status.Status) { s.Login = &l })
	}
}

func (r *statusReporter) setTenantPlanes(all []status.TenantPlane) {
	r.update(func(s *status.Status) { s.TenantPlanes = all })
}

// warnings are what an operator should know of a plane that is ready.
func (r *statusReporter) warnings() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.s.Login; l != nil && l.Problem != "" {
		all = append(all, "polder-authentication: "+l.Problem)
	}
	if b := r.s.Backup; b != nil && b.Problem != "" {
		all = append(all, "polder-backup: "+b.Problem)
	}
	for _, p := range r.s.TenantPlanes {
		if p.Phase == string(tenancy.PlaneFailed) || p.Phase == string(tenancy.PlaneLost) {
			all = append(all, fmt.Sprintf("polder-tenant-planes: that of tenant %s: %s", p.Tenant, p.Message))
		}
	}
	return all
}

// setPhase sets the phase. A plane that is stopping never becomes ready again.
func (r *statusReporter) setPhase(p status.Phase) {
	r.update(func(s *status.Status) {
		if s.Phase == status.Stopping {
			return
		}
		s.Phase = p
		if p == status.Ready {
			now := r.clock.Now()
			s.ReadyAt = &now
		}
	})
}

// recordExit records how the run ended and returns the error.
func (r *statusReporter) recordExit(err error) error {
	r.update(func(s *status.Status) {
		s.Phase, s.Reason = status.Stopped, ""
		if err != nil {
			s.Phase, s.Reason = status.Failed, err.Error()
		}
	})
	return err
}
