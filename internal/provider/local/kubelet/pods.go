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

	"github.com/fsnotify/fsnotify"
)

// Names of the programs that others wait for.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
)

// stopOrder is the order in which processes end: clients first, the store last.
var stopOrder = [][]string{{"kube-scheduler", "kube-controller-manager"}, {apiServer}, {etcd}}

const (
	stopGrace = 8 * time.Second
	// resync is how often the manifests are read even if nothing was heard of a change.
	resync = 30 * time.Second
)

// pods runs what is in the manifest directory.
type pods struct {
	cfg     Config
	changed func()
	report  func(error) // the problem there is, or nil

	mu      sync.Mutex
	running map[string]*pod
	wrong   map[string]string // by file: why it cannot be run
	drained bool
	ended   bool // nothing is started any more
	killed  bool // for good
}

func newPods(cfg Config, changed func(), report func(error)) *pods {
	return &pods{cfg: cfg, changed: changed, report: report, running: map[string]*pod{}, wrong: map[string]string{}}
}

// run follows the manifests until ctx ends.
func (p *pods) run(ctx context.Context) error {
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching manifests: %w; the limit fs.inotify.max_user_instances may be too low", err)
	}
	defer w.Close() //nolint:errcheck // nothing to lose
	if err := w.Add(p.dir()); err != nil {
		return fmt.Errorf("watching %s: %w; the limit fs.inotify.max_user_watches may be too low", p.dir(), err)
	}
	if !p.begin() {
		return nil // the plug was pulled
	}
	defer p.stop()
	tick := time.NewTicker(resync)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := p.sync()
		if errors.Is(err, os.ErrNotExist) {
			return err // with their folder all pods are gone; the next attempt makes a new one
		}
		p.report(err)
		select {
		case <-ctx.Done():
		case <-w.Events:
		case <-w.Errors: // events were lost; everything is read again anyway
		case <-tick.C:
		}
	}
	return nil
}

// sync starts what is new, restarts what changed, and stops what is gone. A file that cannot be
// read takes nothing down: it may be whole again in a moment.
func (p *pods) sync() error {
	whole, broken, err := p.read()
	if err != nil {
		return err
	}
	p.refuse(whole, broken)
	for name, m := range whole {
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
	for _, gone := range p.without(whole, broken) {
		gone.stop()
	}
	return nil
}

// refuse notes which files are no manifests, and forgets those that are gone or whole again.
func (p *pods) refuse(whole map[string]manifest, broken map[string]error) {
	p.mu.Lock()
	before := p.wrong
	p.wrong = map[string]string{}
	for name, m := range whole {
		if why := before[m.file]; why != "" && p.running[name] == nil {
			p.wrong[m.file] = why // until it is tried again
		}
	}
	for file, err := range broken {
		if !errors.Is(err, errUnfinished) {
			p.wrong[file] = fmt.Sprintf("static pod manifest %s cannot be read: %s", file, err)
		}
	}
	same := maps.Equal(before, p.wrong)
	p.mu.Unlock()
	if !same {
		p.changed()
	}
}

func (p *pods) without(whole map[string]manifest, broken map[string]error) (gone []*pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.running {
		if _, ok := whole[name]; !ok && broken[r.manifest.file] == nil {
			delete(p.running, name)
			gone = append(gone, r)
		}
	}
	return gone
}

// start runs a manifest, or notes why it cannot be run: others are not to suffer from it.
func (p *pods) start(m manifest) {
	defer p.changed()
	name := m.pod.Name
	r, err := newPod(p.cfg, m, p.changed)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, name)
	delete(p.wrong, m.file)
	if err != nil {
		p.wrong[m.file] = err.Error()
		return
	}
	if p.ended || p.drained && name == apiServer {
		return
	}
	p.running[name] = r
	r.start(func() bool { return p.serving() || name == etcd || name == apiServer })
}

// stop ends everything in order.
func (p *pods) stop() {
	all := p.end()
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

// begin lets pods be started, again if an earlier run ended.
func (p *pods) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = p.killed
	clear(p.running)
	return !p.killed
}

func (p *pods) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range p.end() {
		wg.Go(r.kill)
	}
	wg.Wait()
}

// end lets nothing start any more.
func (p *pods) end() []*pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	var all []*pod
	for _, r := range p.running {
		all = append(all, r)
	}
	return all
}

func (p *pods) drain() {
	p.mu.Lock()
	p.drained = true
	r := p.running[apiServer]
	p.mu.Unlock()
	if r != nil {
		r.stop()
	}
}
