package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
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

	mu      sync.Mutex
	running map[string]*pod
	wrong   map[string]string // by manifest: why it cannot be run
	drained bool
	ended   bool // nothing is started any more
	killed  bool // for good
}

func newPods(cfg Config, changed func()) *pods {
	return &pods{cfg: cfg, changed: changed, running: map[string]*pod{}, wrong: map[string]string{}}
}

func (p *pods) dir() string { return p.cfg.Dir.Files("/etc/kubernetes/manifests") }

// run follows the manifests until ctx ends.
func (p *pods) run(ctx context.Context) error {
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching manifests: %w", err)
	}
	defer w.Close() //nolint:errcheck // nothing to lose
	if err := w.Add(p.dir()); err != nil {
		return fmt.Errorf("watching %s: %w", p.dir(), err)
	}
	if !p.begin() {
		return nil // the plug was pulled
	}
	defer p.stop()
	tick := time.NewTicker(resync)
	defer tick.Stop()
	for {
		if err := p.sync(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Events:
		case err := <-w.Errors:
			return fmt.Errorf("watching manifests: %w", err)
		case <-tick.C:
		}
	}
}

// sync starts what is new, restarts what changed, and stops what is gone.
func (p *pods) sync() error {
	manifests, err := p.read()
	if err != nil {
		return err
	}
	for name, m := range manifests {
		p.mu.Lock()
		old := p.running[name]
		p.mu.Unlock()
		if old != nil && bytes.Equal(old.manifest.raw, m.raw) {
			continue
		}
		if old != nil {
			old.stop(stopGrace)
		}
		p.start(name, m)
	}
	for _, gone := range p.without(manifests) {
		gone.stop(stopGrace)
	}
	return nil
}

type manifest struct {
	raw []byte
	pod *corev1.Pod
}

// read takes the manifests that are whole; one that is being written is met again when it is.
func (p *pods) read() (map[string]manifest, error) {
	entries, err := os.ReadDir(p.dir())
	if err != nil {
		return nil, err
	}
	out := map[string]manifest{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(p.dir(), e.Name()))
		if err != nil {
			continue // it was removed meanwhile
		}
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal(b, pod); err != nil || len(pod.Spec.Containers) == 0 {
			continue
		}
		out[pod.Name] = manifest{raw: b, pod: pod}
	}
	return out, nil
}

func (p *pods) without(manifests map[string]manifest) (gone []*pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.running {
		if _, ok := manifests[name]; !ok {
			delete(p.running, name)
			gone = append(gone, r)
		}
	}
	return gone
}

// start runs a manifest, or notes why it cannot be run: others are not to suffer from it.
func (p *pods) start(name string, m manifest) {
	defer p.changed()
	r, err := newPod(p.cfg, m, p.changed)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, name)
	delete(p.wrong, name)
	if err != nil {
		p.wrong[name] = err.Error()
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
				wg.Go(func() { r.stop(stopGrace) })
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
		r.stop(stopGrace)
	}
}

// serving says that the API server is ready and its store runs.
func (p *pods) serving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained || p.ended {
		return false
	}
	for name, r := range p.running {
		if name == etcd && !r.isRunning() {
			return false
		}
	}
	r := p.running[apiServer]
	return r != nil && r.isReady()
}

// list is ordered by name.
func (p *pods) list() []*pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*pod
	for _, r := range p.running {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.name(), b.name()) })
	return all
}

// refused lists, in order of their names, manifests that cannot be run and why.
func (p *pods) refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Values(p.wrong))
}

func (p *pods) status() []hostapi.Process {
	var out []hostapi.Process
	for _, r := range p.list() {
		out = append(out, r.status())
	}
	return out
}

func (p *pods) draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running[apiServer]
	return p.drained && !p.killed && r != nil && r.isRunning()
}
