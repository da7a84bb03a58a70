package process

import (
	"fmt"
	"os"
	"time"
)

// run starts the program again and again, until it is asked to end.
func (p *Process) run() {
	defer close(p.done)
	defer p.log.close(p.timing.cleanupTimeout)
	var delay time.Duration
	for restarts := 0; !p.isStopping(); restarts++ {
		exit, ran := p.runOnce(restarts)
		delay = p.timing.backoff.next(delay, ran)
		p.update(func(s *State) {
			s.PID, s.Restarts, s.LastExit, s.NextStart = 0, restarts, &exit, time.Time{}
			if !p.isStopping() {
				s.NextStart = p.clock.Now().Add(delay)
			}
		})
		p.waitBackoff(delay)
	}
	if !p.State().NextStart.IsZero() {
		p.update(func(s *State) { s.NextStart = time.Time{} })
	}
}

// runOnce runs the program one time, from the fork to the end of all that it started.
func (p *Process) runOnce(restarts int) (exit Exit, ran time.Duration) {
	child, output, err := p.fork()
	if err != nil {
		return newStartFailure(fmt.Errorf("starting %s: %w", p.spec.Name, err), p.clock.Now()), 0
	}
	begin := p.clock.Now()
	pump := newPump(output, p.log)
	p.update(func(s *State) {
		s.PID, s.Restarts, s.StartedAt, s.NextStart = child.Pid, restarts, begin, time.Time{}
	})
	g := group(child.Pid)
	p.waitForExit(g)
	// What is left of the group could hold ports and locks that the next run needs. The leader
	// is not reaped yet, so the number cannot have gone to another group.
	g.kill()
	status, err := child.Wait()
	at := p.clock.Now()
	g.waitUntilGone(p.timing.cleanupTimeout)
	return newExit(status, err, at, pump.finish(p.timing.cleanupTimeout)), at.Sub(begin)
}

// fork starts the program and returns it with the reading end of its output.
func (p *Process) fork() (child *os.Process, output *os.File, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close() //nolint:errcheck // the child has its own
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close() //nolint:errcheck // as above
	child, err = p.forker.start(p.spec, null, w)
	if err != nil {
		_ = r.Close() // nothing was written
		return nil, nil, err
	}
	return child, r, nil
}

// waitForExit passes requests to stop and to kill on to the group until its leader has ended.
func (p *Process) waitForExit(g group) {
	leader := g.leaderExited()
	stopRequested, killRequested := p.stopRequested, p.killRequested
	for {
		select {
		case <-leader:
			return
		case <-killRequested:
			g.kill()
			stopRequested, killRequested = nil, nil // a nil channel is never ready: each signal is sent once
		case <-stopRequested:
			stopRequested = nil
			if !isClosed(p.killRequested) {
				g.terminate()
			}
		}
	}
}

// waitBackoff waits out the back-off, unless the end is asked for.
func (p *Process) waitBackoff(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.stopRequested:
	case <-timer.C:
	}
}

func (p *Process) isStopping() bool { return isClosed(p.stopRequested) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
