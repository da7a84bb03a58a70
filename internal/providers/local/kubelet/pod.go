package kubelet

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/partition"
	"github.com/polder-kaas/polder/internal/providers/local/process"
	"github.com/polder-kaas/polder/internal/providers/local/rewrite"
)

// baseEnvironment is that of all processes.
var baseEnvironment = append([]string{"PATH=/usr/bin:/bin"}, confine.Environment()...)

// staticPod is one static pod, running as a process.
type staticPod struct {
	manifest manifest
	spec     process.Spec
	rewrites []hostapi.Rewrite
	recheck  func() error // says right before the start whether the pod may still be run
	forker   *process.Forker
	probe    probe
	onChange func()
	cancel   context.CancelFunc
	ctx      context.Context // of the probe and of waiting to start; ends with the pod
	wg       sync.WaitGroup

	mu      sync.Mutex
	proc    *process.Process // nil while waiting to start
	ready   bool
	refused string // why it was not started
}

func newStaticPod(cfg Config, m manifest, changed func()) (*staticPod, error) {
	r, err := cfg.rewritePod(m)
	if err != nil {
		return nil, err
	}
	if err := makeVolumeDirs(cfg.Dir.RootFS(), r.Dirs); err != nil {
		return nil, fmt.Errorf("static pod %s has a volume that is not on the machine: %w", m.pod.Name, err)
	}
	log := cfg.Dir.LogFile(m.pod.Name)
	if err := os.MkdirAll(cfg.Dir.LogDir(), 0o700); err != nil {
		return nil, fmt.Errorf("making the log folder: %w", err)
	}
	p := &staticPod{
		manifest: m, recheck: func() error { _, err := cfg.rewritePod(m); return err }, rewrites: r.Rewrites,
		forker: cfg.Forker, probe: newProbe(m.pod, cfg.Address), onChange: changed,
		spec: process.Spec{
			Name: m.pod.Name, Path: cfg.Binary, Args: r.Args, Dir: cfg.Dir.RootFS(), Env: cfg.environment(r),
			Log: logfile.File{Path: log},
		},
	}
	return p, nil
}

// environment is that of a process. Of two values the first counts, so ours come before what the pod asks for.
func (c Config) environment(r rewrite.Result) []string {
	env := slices.Clone(baseEnvironment)
	switch r.Args[0] {
	case apiServer:
		env = append(env, c.APIServerEnvironment...)
	case etcd:
		env = append(env, partition.Environment)
	}
	return append(env, r.Env...)
}

// rewritePod says what is run for a manifest, or why nothing is.
func (c Config) rewritePod(m manifest) (rewrite.Result, error) {
	return rewrite.Pod(m.pod, rewrite.Machine{
		Root: c.Dir.RootFS(), Address: c.Address, Cluster: c.Cluster, EmulatedVersion: c.EmulatedVersion,
		AllowEverything: c.AllowEverything,
	})
}

// makeVolumeDirs makes folders of the machine.
func makeVolumeDirs(root string, dirs []string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // nothing to lose
	for _, d := range dirs {
		if err := r.MkdirAll(strings.TrimPrefix(d, "/"), 0o700); err != nil && d != "/" {
			return err
		}
	}
	return nil
}

func (p *staticPod) name() string { return p.manifest.pod.Name }

// start runs the process as soon as canStart says so: a controller without API server would only end and be restarted
// with growing delay.
func (p *staticPod) start(canStart func() bool) {
	p.ctx, p.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with stop or kill, not with a caller
	p.wg.Go(func() {
		if !pollUntil(p.ctx, maxStartDelay, canStart) {
			return
		}
		// It may have waited, and files may have changed since.
		if err := p.recheck(); err != nil {
			p.mu.Lock()
			p.refused = refusedText(err)
			p.mu.Unlock()
			p.onChange()
			return
		}
		p.mu.Lock()
		// Under the lock that kill takes to find the process: nothing is started behind its back.
		if p.ctx.Err() != nil {
			p.mu.Unlock()
			return
		}
		p.proc = process.Start(p.forker, p.spec, p.onProcessChange)
		p.mu.Unlock()
		p.runProbe()
	})
}

// maxStartDelay is how long a controller waits for its API server before it tries without.
const maxStartDelay = 30 * time.Second

// pollUntil polls until ok or limit is reached; it returns false only when ctx has ended.
func pollUntil(ctx context.Context, limit time.Duration, ok func() bool) bool {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for !ok() && limited.Err() == nil {
		select {
		case <-limited.Done():
		case <-t.C:
		}
	}
	return ctx.Err() == nil
}

// onProcessChange is called when the process started or ended. One that ended is not ready, and one without a probe is
// ready as long as it runs.
func (p *staticPod) onProcessChange(s process.State) {
	if s.PID == 0 || p.probe.url == "" {
		p.setReady(s.PID != 0)
	}
	p.onChange()
}

// markReady makes the process ready, unless it has ended since it was probed.
func (p *staticPod) markReady() {
	p.mu.Lock()
	fresh := !p.ready && p.ctx.Err() == nil && p.proc.State().PID != 0
	p.ready = p.ready || fresh
	p.mu.Unlock()
	if fresh {
		p.onChange()
	}
}

func (p *staticPod) setReady(ready bool) {
	p.mu.Lock()
	same := p.ready == ready
	p.ready = ready
	p.mu.Unlock()
	if !same {
		p.onChange()
	}
}

func (p *staticPod) process() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

func (p *staticPod) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *staticPod) isRunning() bool {
	proc := p.process()
	return proc != nil && proc.State().PID != 0
}

func (p *staticPod) stop() {
	p.cancel()
	p.setReady(false)
	if proc := p.process(); proc != nil {
		proc.Stop(stopGracePeriod)
	}
	p.wg.Wait()
}

func (p *staticPod) kill() {
	p.cancel()
	if proc := p.process(); proc != nil {
		proc.Kill()
	}
	p.wg.Wait()
}

func (p *staticPod) state() process.State {
	if proc := p.process(); proc != nil {
		return proc.State()
	}
	return process.State{}
}

func (p *staticPod) status() hostapi.ProcessStatus {
	s := p.state()
	out := hostapi.ProcessStatus{
		Name: p.name(), PID: s.PID, Ready: p.isReady(), StartedAt: s.StartedAt, Restarts: s.Restarts,
		Log: p.spec.Log.Path, Command: p.spec.Args, Rewrites: p.rewrites,
	}
	if s.LastExit != nil {
		out.LastExit, out.LastExitAt, out.Output = exitText(*s.LastExit), s.LastExit.At, s.LastExit.Output
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused != "" {
		out.LastExit = p.refused
	}
	return out
}

// refusedText says, in place of how a run ended, that there is none.
func refusedText(err error) string { return "is not started: " + err.Error() }

// exitText says how a run ended, in words that stay the same if the next one ends alike.
func exitText(e process.Exit) string {
	what := fmt.Sprintf("exited with code %d", e.Code)
	switch {
	case e.Signal != "":
		what = "was ended by " + e.Signal
	case e.Code < 0:
		what = "could not be started"
	}
	if n := len(e.Output); n > 0 {
		what += ": " + e.Output[n-1]
	}
	return what
}
