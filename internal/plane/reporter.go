package plane

import (
	"log/slog"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
)

// reporter keeps the status file up to date. A status that cannot be written (a full disk) is
// worth a warning, not an outage.
type reporter struct {
	dir string
	log *slog.Logger

	mu sync.Mutex
	s  status.Status
}

func newReporter(dir string, log *slog.Logger, s status.Status) *reporter {
	r := &reporter{dir: dir, log: log, s: s}
	r.update(func(*status.Status) {})
	return r
}

func (r *reporter) update(change func(*status.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.s)
	if err := status.Write(r.dir, r.s); err != nil {
		r.log.Warn("the status file is out of date", "error", err)
	}
}

func (r *reporter) components(cs []supervisor.Status) {
	r.update(func(s *status.Status) { s.Components = cs })
}

// phase moves on to p. A plane that is stopping never becomes ready again.
func (r *reporter) phase(p status.Phase) {
	r.update(func(s *status.Status) {
		if s.Phase == status.Stopping {
			return
		}
		s.Phase = p
		if p == status.Ready {
			now := time.Now()
			s.ReadyAt = &now
		}
	})
}

// end records how the run ended and hands the error on.
func (r *reporter) end(err error) error {
	r.update(func(s *status.Status) {
		s.Phase, s.Reason = status.Stopped, ""
		if err != nil {
			s.Phase, s.Reason = status.Failed, err.Error()
		}
	})
	return err
}
