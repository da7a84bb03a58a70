package measure

import (
	"context"
	"maps"
	"time"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
)

// The plane is idle when it has had no requests for some time. It is polled often, so that the end is
// known well enough. What polling costs, and the idle plane itself, is known from the idle period and
// subtracted.
const (
	idlePeriod      = 5 * time.Second
	pollInterval    = 250 * time.Millisecond
	cpuSettlePeriod = time.Second // after the last request; CPU time until then still counts
)

// Effort is what something took until the plane was idle.
type Effort struct {
	Clock    time.Duration // up to the last request
	CPU      process.CPU
	Requests Requests
}

// Measure does something and returns what that took, up to its end: the plane need not be idle then.
func (p *Plane) Measure(ctx context.Context, work func() error) (Effort, error) {
	before, err := p.Snapshot(ctx)
	if err != nil {
		return Effort{}, err
	}
	begin := time.Now()
	if err := work(); err != nil {
		return Effort{}, err
	}
	clock := time.Since(begin)
	after, err := p.Snapshot(ctx)
	return Effort{Clock: clock, CPU: after.CPU.Minus(before.CPU), Requests: after.Requests.Minus(before.Requests)}, err
}

// AwaitIdle waits until the plane is idle.
func (p *Plane) AwaitIdle(ctx context.Context) error {
	_, err := p.MeasureUntilIdle(ctx, time.Now(), Effort{})
	return err
}

// MeasureUntilIdle waits until the plane is idle and returns what has happened since begin, when CPU time and requests
// were as before.
func (p *Plane) MeasureUntilIdle(ctx context.Context, begin time.Time, before Effort) (Effort, error) {
	e := Effort{Requests: before.Requests}
	var used process.CPU
	looks, busy := 0, 0 // all polls, and those until CPU time had settled
	last := time.Now()
	for time.Since(last) < idlePeriod {
		now, err := p.Snapshot(ctx)
		if err != nil {
			return e, err
		}
		used = now.CPU
		looks++
		if !maps.Equal(now.Requests, e.Requests) {
			last, e.Requests = time.Now(), now.Requests
		}
		if time.Since(last) < cpuSettlePeriod {
			e.CPU, busy = now.CPU, looks
		}
		if err := scenario.Sleep(ctx, pollInterval); err != nil {
			return e, err
		}
	}
	e.Clock = last.Sub(begin)
	// What a poll costs, with the idle plane: known from those after the last request.
	rest := used.Minus(e.CPU).Own / time.Duration(max(1, looks-busy))
	e.CPU = e.CPU.Minus(before.CPU)
	e.CPU.Own = max(0, e.CPU.Own-time.Duration(busy)*rest)
	e.Requests = e.Requests.Minus(before.Requests)
	return e, nil
}

// Snapshot returns the CPU time and the requests of the plane so far.
func (p *Plane) Snapshot(ctx context.Context) (e Effort, err error) {
	if e.Requests, err = p.Requests(ctx); err != nil {
		return e, err
	}
	e.CPU, err = p.CPU()
	return e, err
}
