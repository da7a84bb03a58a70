package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
)

// Maintain drops the history of all objects and gives the space back to the disk. Watches that lag behind begin anew;
// nobody can read or write while the database is written afresh.
func (e *Etcd) Maintain(ctx context.Context) (maintenance.Result, error) {
	e.maintaining.Lock()
	defer e.maintaining.Unlock()
	m := maintenance.Result{Before: e.sizes(), Limit: e.cfg.Quota}
	if err := e.compact(ctx, e.server.Server.KV().Rev()); err != nil {
		return m, err
	}
	var err error
	if m.Blocked, err = e.defragment(); err != nil {
		return m, err
	}
	m.After = e.sizes()
	// Not wrong, but worth a line: nobody was answered meanwhile.
	e.cfg.Log.Warn("the store was maintained", zap.Int64("before", m.Before.File), zap.Int64("after", m.After.File),
		zap.Duration("blocked", m.Blocked))
	r := e.look(ctx)
	m.Writable = !r.hasAlarm
	if p := r.problem(e.cfg.Dir); p != nil {
		m.Problem = p.Error()
	}
	return m, nil
}

func (e *Etcd) sizes() maintenance.Sizes {
	b := e.server.Server.Backend()
	return maintenance.Sizes{File: b.Size(), InUse: b.SizeInUse()}
}

// compact drops all that was no more the state of an object at a revision.
func (e *Etcd) compact(ctx context.Context, revision int64) error {
	_, err := e.server.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err == nil || errors.Is(err, mvcc.ErrCompacted) { // by somebody else
		return nil
	}
	return fmt.Errorf("compacting the store: %w", err)
}

// defragment writes the database afresh, for which there must be room beside the old one.
func (e *Etcd) defragment() (time.Duration, error) {
	need := uint64(e.sizes().InUse) + lowRoom //nolint:gosec // a size
	if free, known := e.cfg.FreeBytes(e.cfg.Dir); known && free < need {
		return 0, fmt.Errorf("the disk that holds %s has %d MB free, but %d MB are needed to write the store afresh; free some space, then run: polder maintain",
			e.cfg.Dir, free/1e6, need/1e6)
	}
	begin := e.cfg.Clock.Now()
	if err := e.server.Server.Defragment(); err != nil {
		return 0, fmt.Errorf("writing the store afresh: %w", err)
	}
	return e.cfg.Clock.Since(begin), nil
}

// When the store is maintained without being asked to.
const (
	maintainInterval = time.Minute // at least between two decisions
	quietWrites      = 60          // as many changes within maintainInterval are nothing much
	largeWaste       = 256 << 20   // below that, a pause is not worth it unless the limit is near
)

// action is what the store needs.
type action int

const (
	leave action = iota
	compact
	maintain // compact, and write afresh
)

// maintainer decides when the store is maintained.
type maintainer struct {
	next     time.Time // not before, unless an alarm is new
	revision int64     // at the last decision
	hadAlarm bool
}

// decide says what helps now.
//
// A full store is maintained as soon as something was deleted: it takes no changes, so a pause does no harm. Near the
// limit, history is kept for a minute only, and gaps are removed once a tenth of the file is gaps. Otherwise a
// database that is mostly gaps is written afresh when little is going on.
func (m *maintainer) decide(r room, s maintenance.Sizes, revision int64) action {
	changes, waste := revision-m.revision, s.File-s.InUse
	switch {
	case r.diskLow: // a second file would not find room
	case r.hasAlarm && changes > 0:
		return maintain
	case r.isNearLimit() && waste >= s.File/10:
		return maintain
	case r.isNearLimit() && changes > 0 && m.revision > 0:
		return compact
	case waste >= largeWaste && waste >= s.File/2 && changes < quietWrites:
		return maintain
	}
	return leave
}

// maintainIfDue is called at each look.
func (e *Etcd) maintainIfDue(ctx context.Context, m *maintainer, r room) {
	isNew := r.hasAlarm && !m.hadAlarm
	m.hadAlarm = r.hasAlarm
	now := e.cfg.Clock.Now()
	if now.Before(m.next) && !isNew {
		return
	}
	m.next = now.Add(maintainInterval)
	before, revision := m.revision, e.server.Server.KV().Rev()
	what := m.decide(r, e.sizes(), revision)
	m.revision = revision
	var err error
	switch what {
	case compact:
		err = e.compact(ctx, before)
	case maintain:
		_, err = e.Maintain(ctx)
	}
	if err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("the store could not be maintained", zap.Error(err))
	}
}
