package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Stage is a set of components that start together and stop together.
type Stage []Component

// Config says how a Supervisor behaves. The zero value is usable but for Log.
type Config struct {
	Log   *slog.Logger
	Clock clock.Clock // nil means the real one

	// StartTimeout bounds how long one component may take to become ready. 0: two minutes.
	StartTimeout time.Duration
	// StopTimeout bounds the stop of the whole plane. 0: nine seconds.
	StopTimeout time.Duration
	// StageStopTimeout bounds the stop of one stage, so that a stuck controller does not
	// keep the store from closing. 0: four seconds.
	StageStopTimeout time.Duration

	// OnChange is called, one call at a time, with all statuses after each change of state.
	OnChange func([]Status)
}

// minStageStop is what every stage gets even if those before it have used up all the time.
const minStageStop = 500 * time.Millisecond

// Supervisor owns the goroutines of its components.
type Supervisor struct {
	cfg      Config
	stages   []Stage
	statuses *statusTable
	failures chan *ComponentError // with room for one of each component, so that no runner ever blocks
	running  map[string]*runningComponent
}

// runningComponent is a component that was started.
type runningComponent struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// ComponentError says which component ended the plane, and why.
type ComponentError struct {
	Component string
	Err       error
}

func (e *ComponentError) Error() string { return fmt.Sprintf("component %s: %v", e.Component, e.Err) }
func (e *ComponentError) Unwrap() error { return e.Err }

// ErrStopTimeout marks a stop that left components behind.
var ErrStopTimeout = errors.New("stopping took too long")

// errUnexpectedExit is the error of a component that ends without being asked to.
var errUnexpectedExit = errors.New("ended without being asked to")

// New prepares a supervisor; nothing runs before Run.
func New(cfg Config, stages ...Stage) *Supervisor {
	cfg.Clock = orDefault[clock.Clock](cfg.Clock, clock.RealClock{})
	cfg.StartTimeout = orDefault(cfg.StartTimeout, 2*time.Minute)
	cfg.StopTimeout = orDefault(cfg.StopTimeout, 9*time.Second)
	cfg.StageStopTimeout = orDefault(cfg.StageStopTimeout, 4*time.Second)
	s := &Supervisor{cfg: cfg, stages: stages, running: map[string]*runningComponent{}}
	var all []Component
	for _, st := range stages {
		all = append(all, st...)
	}
	s.failures = make(chan *ComponentError, len(all))
	s.statuses = newStatusTable(cfg.Clock, cfg.OnChange, all)
	return s
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Run starts the stages in order, serves until ctx ends or a component fails, and stops the
// stages in reverse. It returns nil after a stop in order that was asked for, a
// *ComponentError if a component failed, and ErrStopTimeout if one would not stop.
// ready is called once, when every component is ready.
func (s *Supervisor) Run(ctx context.Context, ready func()) error {
	err := s.start(ctx)
	if err == nil {
		ready()
		select {
		case <-ctx.Done():
		case ce := <-s.failures:
			err = ce
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // asked to stop while starting
	}
	stopErr := s.stop()
	if err == nil {
		return stopErr
	}
	if stopErr != nil { // often a consequence of err, so err stays the reason
		s.cfg.Log.Warn("the stop was not in order", "error", stopErr)
	}
	return err
}

func (s *Supervisor) start(ctx context.Context) error {
	for _, stage := range s.stages {
		begin := s.cfg.Clock.Now()
		for _, c := range stage {
			s.launch(ctx, c)
		}
		for _, c := range stage {
			if err := s.awaitReady(ctx, c, begin); err != nil {
				return err
			}
		}
	}
	return nil
}

// launch runs c in a goroutine of its own, whose context outlives ctx: components are stopped in the order of
// their stages, not when the signal arrives.
func (s *Supervisor) launch(ctx context.Context, c Component) {
	cctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &runningComponent{cancel: cancel, done: make(chan struct{})}
	s.running[c.Name()] = r
	s.statuses.set(c.Name(), Starting, "")
	go func() {
		defer close(r.done)
		err := s.runGuarded(cctx, c)
		if cctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				s.cfg.Log.Warn("component did not stop cleanly", "component", c.Name(), "error", err)
			}
			s.statuses.set(c.Name(), Stopped, "")
			return
		}
		if err == nil {
			err = errUnexpectedExit
		}
		s.statuses.set(c.Name(), Failed, err.Error())
		s.failures <- &ComponentError{Component: c.Name(), Err: err}
	}()
}

// runGuarded turns a panic of the component's own goroutine into an error, with its stack in the log.
func (s *Supervisor) runGuarded(ctx context.Context, c Component) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("component panicked", "component", c.Name(), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.Run(ctx)
}

func (s *Supervisor) awaitReady(ctx context.Context, c Component, begin time.Time) error {
	timer := s.cfg.Clock.NewTimer(s.cfg.StartTimeout)
	defer timer.Stop()
	select {
	case <-c.Ready():
	case ce := <-s.failures:
		return ce
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		err := fmt.Errorf("not ready after %s", s.cfg.StartTimeout)
		s.statuses.set(c.Name(), Failed, err.Error())
		return &ComponentError{Component: c.Name(), Err: err}
	}
	// A component may have failed after it became ready; its failure must not be overwritten.
	if s.statuses.compareAndSet(c.Name(), Starting, Ready) {
		s.cfg.Log.Info("component ready", "component", c.Name(), "after",
			s.cfg.Clock.Since(begin).Round(time.Millisecond).String())
	}
	return nil
}

// stop stops the stages in reverse order.
func (s *Supervisor) stop() error {
	deadline := s.cfg.Clock.Now().Add(s.cfg.StopTimeout)
	var stuck []error
	for i := len(s.stages) - 1; i >= 0; i-- {
		stuck = append(stuck, s.stopStage(s.stages[i], deadline)...)
	}
	return errors.Join(stuck...)
}

func (s *Supervisor) stopStage(stage Stage, deadline time.Time) []error {
	limit := max(minStageStop, min(s.cfg.StageStopTimeout, deadline.Sub(s.cfg.Clock.Now())))
	var wg sync.WaitGroup
	errs := make([]error, len(stage))
	for i, c := range stage {
		r := s.running[c.Name()]
		if r == nil {
			continue // never started
		}
		// A component that has failed or stopped keeps that state.
		if !s.statuses.compareAndSet(c.Name(), Ready, Stopping) {
			s.statuses.compareAndSet(c.Name(), Starting, Stopping)
		}
		r.cancel()
		wg.Go(func() {
			timer := s.cfg.Clock.NewTimer(limit)
			defer timer.Stop()
			select {
			case <-r.done:
			case <-timer.C():
				errs[i] = fmt.Errorf("%w: component %s still runs", ErrStopTimeout, c.Name())
			}
		})
	}
	wg.Wait()
	return errs
}
