package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/rewrite"
)

// Names of the programs that others wait for.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
)

// stopOrder is the order in which processes end: clients first, etcd last.
var stopOrder = [][]string{{"kube-scheduler", "kube-controller-manager"}, {apiServer}, {etcd}}

const stopGracePeriod = 8 * time.Second

// unwatchedInterval is how often manifests are read if nobody tells of changes.
const unwatchedInterval = time.Second

// staticPods runs what is in the manifest directory.
type staticPods struct {
	cfg           Config
	onChange      func()
	reportProblem func(error) // what is wrong now, or nil
	maxDisk       int64
	checkInterval time.Duration // of the disk; the manifests are read again at the same time, without an event

	mu       sync.Mutex
	running  map[string]*staticPod
	rejected map[string]string // by file: why it cannot be run
	refused  map[string]string // by file: the pod of the control plane that may not be run, which makes it fail
	drained  bool
	stopping bool // nothing is started any more
	held     bool // nothing is started, because the disk is full
	killed   bool // for good
}

func newStaticPods(cfg Config, changed func(), report func(error)) *staticPods {
	return &staticPods{
		cfg: cfg, onChange: changed, reportProblem: report, running: map[string]*staticPod{}, rejected: map[string]string{},
		refused: map[string]string{}, maxDisk: maxDisk, checkInterval: diskCheckInterval,
	}
}

// run keeps the processes in step with the manifests until ctx ends.
func (p *staticPods) run(ctx context.Context) error {
	if err := os.MkdirAll(p.manifestDir(), 0o700); err != nil {
		return err
	}
	changes, end, err := p.cfg.Watcher.Watch(p.manifestDir())
	if err != nil {
		p.cfg.Log.Warn("manifests are not watched, but read at intervals", "dir", p.manifestDir(), "error", err)
	}
	defer end()
	if !p.allowStarts() {
		return nil // the plug was pulled
	}
	defer p.stop()
	interval := p.checkInterval
	if changes == nil {
		interval = min(interval, unwatchedInterval)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := p.checkDisk()
		if p.hold(err != nil) {
			err = p.sync()
		}
		if errors.Is(err, os.ErrNotExist) {
			return err // with their folder all pods are gone; the next attempt makes a new one
		}
		p.reportProblem(err)
		select {
		case <-ctx.Done():
		case <-changes:
		case <-tick.C:
		}
	}
	return nil
}

// sync starts what is new, restarts what changed, and stops what is gone. A file that cannot be
// read takes nothing down: it may be whole again in a moment.
func (p *staticPods) sync() error {
	valid, invalid, err := p.readManifests()
	if err != nil {
		return err
	}
	p.recordRejected(valid, invalid)
	for name, m := range valid {
		p.mu.Lock()
		old := p.running[name]
		p.mu.Unlock()
		if old != nil && bytes.Equal(old.manifest.raw, m.raw) {
			continue
		}
		if old != nil {
			old.stop()
		}
		p.start(m)
	}
	for _, gone := range p.takeRemoved(valid, invalid) {
		gone.stop()
	}
	return nil
}

// recordRejected records which files are no valid manifests, and drops those that are gone or whole again.
func (p *staticPods) recordRejected(valid map[string]manifest, invalid map[string]error) {
	p.mu.Lock()
	before := p.rejected
	p.rejected = map[string]string{}
	refused := map[string]string{}
	for name, m := range valid {
		if why := before[m.file]; why != "" && p.running[name] == nil {
			p.rejected[m.file] = why // until it is tried again
			if p.refused[m.file] != "" {
				refused[m.file] = name
			}
		}
	}
	p.refused = refused
	for file, err := range invalid {
		if !errors.Is(err, errEmptyManifest) {
			p.rejected[file] = fmt.Sprintf("static pod manifest %s cannot be read: %s", file, err)
		}
	}
	same := maps.Equal(before, p.rejected)
	p.mu.Unlock()
	if !same {
		p.onChange()
	}
}

// takeRemoved takes the pods whose manifest is gone out of those that run. A file that cannot be read is not gone.
func (p *staticPods) takeRemoved(valid map[string]manifest, invalid map[string]error) (gone []*staticPod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.running {
		if _, ok := valid[name]; !ok && invalid[r.manifest.file] == nil {
			delete(p.running, name)
			gone = append(gone, r)
		}
	}
	return gone
}

// start runs a manifest, or records why it cannot be run: the others must not suffer from it.
func (p *staticPods) start(m manifest) {
	defer p.onChange()
	name := m.pod.Name
	r, err := newStaticPod(p.cfg, m, p.onChange)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, name)
	delete(p.rejected, m.file)
	delete(p.refused, m.file)
	if err != nil {
		p.rejected[m.file] = err.Error()
		if errors.As(err, new(*rewrite.RefusedError)) {
			p.refused[m.file] = name
		}
		return
	}
	if p.stopping || p.drained && name == apiServer {
		return
	}
	p.running[name] = r
	r.start(func() bool { return p.isServing() || name == etcd || name == apiServer })
}

// stop ends everything in stopOrder, what is not named there last.
func (p *staticPods) stop() {
	all := p.denyStarts()
	// nil stands for all others; what has stopped already is done at once.
	for _, names := range append(stopOrder, nil) {
		var wg sync.WaitGroup
		for _, r := range all {
			if names == nil || slices.Contains(names, r.name()) {
				wg.Go(func() { r.stop() })
			}
		}
		wg.Wait()
	}
}

// allowStarts allows pods to be started, again if an earlier run ended. It returns false after kill.
func (p *staticPods) allowStarts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = p.killed
	clear(p.running)
	return !p.killed
}

func (p *staticPods) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range p.denyStarts() {
		wg.Go(r.kill)
	}
	wg.Wait()
}

// denyStarts lets nothing start any more, and returns what runs.
func (p *staticPods) denyStarts() []*staticPod {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	var all []*staticPod
	for _, r := range p.running {
		all = append(all, r)
	}
	return all
}

func (p *staticPods) drain() {
	p.mu.Lock()
	// Before the stop, so that the balancer sends nothing new while requests end.
	p.drained = true
	r := p.running[apiServer]
	p.mu.Unlock()
	if r != nil {
		r.stop()
	}
}
