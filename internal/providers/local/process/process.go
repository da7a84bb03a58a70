// Package process runs programs under supervision inside a long-lived process, as a kubelet
// runs static pods: restarted with back-off when they end, their output in rotating log
// files, and gone when the supervising process is gone.
//
// Each program leads a process group of its own and is signalled with the whole group. What
// leaves the group (setsid) is out of reach: it is neither signalled nor waited for. The death
// of the supervising process by SIGKILL takes down the programs themselves, but not what they
// started. Linux only.
package process

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/logfile"
)

// Spec says what to run.
type Spec struct {
	Name string       // for people
	Path string       // the program, absolute; argv[0] may differ (multi-call binary)
	Args []string     // the whole argv including argv[0]; empty: Path alone
	Dir  string       // working directory; empty: ours
	Env  []string     // the whole environment; nothing of ours is passed on
	Log  logfile.File // where stdout and stderr go
}

// timing holds the times by which a Process goes; tests shorten them.
type timing struct {
	backoff        backoff
	cleanupTimeout time.Duration // what the group, its pipe and the log get each, once the group was killed
	logTimeout     time.Duration // how long a log that does not keep up may hold up the program
}

var defaultTiming = timing{
	backoff:        backoff{initial: 500 * time.Millisecond, max: 10 * time.Second, resetAfter: 30 * time.Second},
	cleanupTimeout: 2 * time.Second,
	logTimeout:     time.Second,
}

// Process is one program that is kept running. Its methods are safe for concurrent use.
type Process struct {
	forker   *Forker
	spec     Spec
	timing   timing
	clock    clock.PassiveClock
	onChange func(State)
	log      *sink

	requestStop, requestKill     func()        // close stopRequested and killRequested; idempotent
	stopRequested, killRequested chan struct{} // the program is to end; it is to end at once
	done                         chan struct{}

	mu    sync.Mutex
	state State
}

// Start runs spec until Stop or Kill, restarting it with back-off: 0.5 s doubling to 10 s,
// reset after it has run for 30 s. A program that cannot be started is retried in the same way.
// onChange (may be nil) is called after every change of state but those of DroppedBytes, never
// concurrently with itself and not after Done; it must not block or call back.
func Start(f *Forker, spec Spec, onChange func(State)) *Process {
	return start(f, spec, onChange, defaultTiming)
}

func start(f *Forker, spec Spec, onChange func(State), t timing) *Process {
	spec.Args, spec.Env = slices.Clone(spec.Args), slices.Clone(spec.Env)
	if len(spec.Args) == 0 {
		spec.Args = []string{spec.Path}
	}
	p := &Process{
		forker: f, spec: spec, timing: t, clock: clock.RealClock{}, onChange: onChange, log: newSink(spec.Log, t.logTimeout),
		stopRequested: make(chan struct{}), killRequested: make(chan struct{}), done: make(chan struct{}),
	}
	p.requestStop = sync.OnceFunc(func() { close(p.stopRequested) })
	p.requestKill = sync.OnceFunc(func() { close(p.killRequested) })
	go p.run()
	return p
}

// Stop sends SIGTERM, after grace SIGKILL, and waits until the process and what it started in
// its group are gone. When the process itself ends, the rest of its group is killed without
// further grace. Idempotent; of several graces the first to pass counts. During back-off it
// returns at once.
func (p *Process) Stop(grace time.Duration) {
	p.requestStop()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Kill is Stop with SIGKILL at once.
func (p *Process) Kill() {
	p.requestKill() // before requestStop: whoever sees the stop request must see that it is to be at once
	p.requestStop()
	<-p.done
}

// Done is closed when, after Stop or Kill, nothing runs any more.
func (p *Process) Done() <-chan struct{} { return p.done }

// State returns the state of the process.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	s.DroppedBytes = p.log.dropped.Load()
	return s
}

// update is called by run alone, so onChange is not called concurrently.
func (p *Process) update(change func(*State)) {
	p.mu.Lock()
	change(&p.state)
	p.mu.Unlock()
	if p.onChange != nil {
		p.onChange(p.State())
	}
}
