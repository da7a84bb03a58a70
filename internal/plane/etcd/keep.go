package etcd

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"
)

// keepInterval is how often the store is looked at.
const keepInterval = 2 * time.Second

// keep looks after the store while it serves, until ctx ends.
func (e *Etcd) keep(ctx context.Context) {
	var m maintainer
	interval := cmp.Or(e.cfg.RecordInterval, recordInterval)
	now := e.cfg.Clock.Now()
	nextRecord := now.Add(min(interval, firstRecord))
	var recorded int64
	ticker := e.cfg.Clock.NewTicker(min(interval, keepInterval))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		e.maintainIfDue(ctx, &m, e.look(ctx))
		if now = e.cfg.Clock.Now(); !now.Before(nextRecord) {
			nextRecord = now.Add(interval)
			recorded = e.recordIfChanged(ctx, recorded)
		}
	}
}

// tell logs when the store begins or ceases to take changes.
func (e *Etcd) tell(before, now room) {
	was, is := before.problem(e.cfg.Dir), now.problem(e.cfg.Dir)
	switch {
	case was == nil && is != nil:
		e.cfg.Log.Error(is.Error())
	case was != nil && is == nil:
		e.cfg.Log.Warn("there is room again, and the store takes changes")
	}
}

// recordIfChanged returns the revision up to which the content is recorded.
func (e *Etcd) recordIfChanged(ctx context.Context, recorded int64) int64 {
	if e.server.Server.KV().Rev() == recorded {
		return recorded
	}
	last, err := e.writeRecords(ctx, e.server.Server)
	switch {
	case ctx.Err() != nil:
		return recorded
	case err != nil:
		e.cfg.Log.Warn("the content of the store could not be recorded", zap.Error(err))
		return recorded
	}
	return last
}
