package main

import (
	"context"
	"maps"
	"time"
)

// The plane is at rest when it has had no requests for some time. It is asked often, so that the end is
// known well enough. What asking costs, and the plane at rest itself, is known from the time of rest and
// taken off.
const (
	quiet    = 5 * time.Second
	interval = 250 * time.Millisecond
	lull     = time.Second // after the last request; CPU time until then still counts
)

// effort is what something took until the plane was at rest.
type effort struct {
	clock    time.Duration // up to the last request
	cpu      cpu
	requests requests
}

// since waits for rest and says what has happened since begin, when cpu and requests were as before.
func (p *plane) since(ctx context.Context, begin time.Time, before effort) (effort, error) {
	e := effort{requests: before.requests}
	var used cpu
	looks, busy := 0, 0 // all of them, and those up to the lull
	last := time.Now()
	for time.Since(last) < quiet {
		now, err := p.now(ctx)
		if err != nil {
			return e, err
		}
		used = now.cpu
		looks++
		if !maps.Equal(now.requests, e.requests) {
			last, e.requests = time.Now(), now.requests
		}
		if time.Since(last) < lull {
			e.cpu, busy = now.cpu, looks
		}
		if err := sleep(ctx, interval); err != nil {
			return e, err
		}
	}
	e.clock = last.Sub(begin)
	rest := used.minus(e.cpu).own / time.Duration(max(1, looks-busy))
	e.cpu = e.cpu.minus(before.cpu)
	e.cpu.own = max(0, e.cpu.own-time.Duration(busy)*rest)
	e.requests = e.requests.minus(before.requests)
	return e, nil
}

// now is where the plane is.
func (p *plane) now(ctx context.Context) (e effort, err error) {
	if e.requests, err = p.requests(ctx); err != nil {
		return e, err
	}
	e.cpu, err = p.cpu()
	return e, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
