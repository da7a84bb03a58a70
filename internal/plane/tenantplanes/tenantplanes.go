// Package tenantplanes runs the planes of tenants that have one of their own: each is a polderd with a directory below
// that of this plane, which is started by it and ends with it. Requests for their namespaces come to this plane's
// address, are authenticated and authorised here, and are handed on with the name of who makes them.
package tenantplanes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// maxStarting is how many planes start at the same time: each keeps a core busy for some seconds.
const maxStarting = 2

// Config says how the planes of tenants are run.
type Config struct {
	Dir     string // the data directory of this plane
	Program string // polderd; the running one, even if the file was replaced since
	// Args are flags of this plane that the others have, too.
	Args []string
	// BackupDir is where this plane makes backups; the others make theirs below it. Empty: none are made.
	BackupDir string
	// Requests is how many requests one plane is given at a time, watches not counted.
	Requests  int
	NewClient func(kubeconfig string) (client.Client, error) // with the kinds that controllers need
	Clock     clock.WithTicker
	Log       *slog.Logger
	Report    func([]status.TenantPlane) // is told how all of them are, after each change
}

// Planes are the planes of tenants, and the component that runs them.
type Planes struct {
	cfg       Config
	authority *authority
	starting  chan struct{} // a place for each plane that starts
	ready     chan struct{}

	mu       sync.Mutex
	ctx      context.Context // of Run; nil before
	children map[types.UID]*child
	notify   []func(namespace string)
	running  sync.WaitGroup
}

var _ tenancy.Planes = (*Planes)(nil)

// New starts nothing yet.
func New(cfg Config) (*Planes, error) {
	a, err := newAuthority(cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("making the key with which requests are handed on: %w", err)
	}
	return &Planes{
		cfg: cfg, authority: a, starting: make(chan struct{}, maxStarting), ready: make(chan struct{}),
		children: map[types.UID]*child{},
	}, nil
}

// Name is the component's name.
func (p *Planes) Name() string { return "tenant-planes" }

// Ready closes at once: this plane serves others while planes of tenants start, or fail.
func (p *Planes) Ready() <-chan struct{} { return p.ready }

// stopPatience is how long planes may take to stop. They end by themselves when this process is gone.
const stopPatience = 3 * time.Second

// Run keeps the planes running that Ensure names, until ctx ends.
func (p *Planes) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.ctx = ctx
	for _, c := range p.children {
		if c.wanted {
			p.launch(c)
		}
	}
	p.mu.Unlock()
	close(p.ready)
	<-ctx.Done()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.running.Wait()
	}()
	select {
	case <-ended:
	case <-p.cfg.Clock.After(stopPatience):
		p.cfg.Log.Warn("planes of tenants are still stopping", "after", stopPatience)
	}
	return nil
}

// launch runs a child; the lock is held, and Run has begun.
func (p *Planes) launch(c *child) {
	ctx, cancel := context.WithCancel(p.ctx)
	c.cancel = cancel
	p.running.Go(func() {
		defer close(c.done)
		c.run(ctx)
	})
}

// DirOf returns where the data of the plane of a namespace are. It is short: there are sockets in it.
func (p *Planes) DirOf(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return filepath.Join(p.cfg.Dir, lifecycle.TenantPlanesDir, hex.EncodeToString(sum[:6]))
}

// Ensure starts the plane of a namespace. One that was there before and is not now is not made anew: it would be empty.
func (p *Planes) Ensure(ns *corev1.Namespace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.children[ns.UID]
	if c == nil {
		c = &child{
			planes: p, namespace: ns.Name, tenant: ns.Labels[v1alpha1.TenantLabel], dir: p.DirOf(ns.UID),
			done:  make(chan struct{}),
			state: tenancy.PlaneState{Phase: tenancy.PlaneStarting, Message: "it waits for its start"},
		}
		p.children[ns.UID] = c
	}
	if c.cancel != nil {
		return
	}
	if ns.Annotations[v1alpha1.PlaneUIDAnnotation] != "" && !hasStore(c.dir) {
		c.setState(tenancy.PlaneLost, fmt.Sprintf(
			"its data were in %s and are not there, and no empty plane is made in their place; put them back from a backup", c.dir))
		return
	}
	c.wanted = true
	if p.ctx != nil {
		p.launch(c)
	}
}

// hasStore reports whether there are data of a plane.
func hasStore(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "etcd", "member"))
	return err == nil
}

// find returns the plane of a namespace, or nil if there is none.
func (p *Planes) find(uid types.UID) *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.children[uid]
}

// State says how a plane is.
func (p *Planes) State(uid types.UID) tenancy.PlaneState {
	if c := p.find(uid); c != nil {
		return c.getState()
	}
	return tenancy.PlaneState{Phase: tenancy.PlaneUnknown}
}

// Client returns a client with all rights in a plane.
func (p *Planes) Client(uid types.UID) (client.Client, error) {
	c := p.find(uid)
	if c == nil {
		return nil, errors.New("it has not been started")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpoint == nil {
		return nil, errors.New(c.state.Message)
	}
	return c.endpoint.client, nil
}

// endpointOf returns where requests for a namespace go, or nil if they go nowhere.
func (p *Planes) endpointOf(ns *corev1.Namespace) (*endpoint, tenancy.PlaneState) {
	c := p.find(ns.UID)
	if c == nil {
		return nil, tenancy.PlaneState{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Phase != tenancy.PlaneReady {
		return nil, c.state
	}
	return c.endpoint, c.state
}

// namespaces returns those that have a plane of their own.
func (p *Planes) namespaces() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.children {
		out = append(out, c.namespace)
	}
	slices.Sort(out)
	return out
}

// Accept lets requests into a plane, which is the one it is taken for.
func (p *Planes) Accept(uid types.UID) {
	if c := p.find(uid); c != nil {
		c.accept()
	}
}

// Reject keeps requests from a plane.
func (p *Planes) Reject(uid types.UID, reason string) {
	if c := p.find(uid); c != nil {
		c.reject(reason)
	}
}

// Notify has a function called with the name of a namespace after each change of its plane. It must not wait.
func (p *Planes) Notify(f func(namespace string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = append(p.notify, f)
}

// removedSuffix marks the data of a plane that is being removed: nothing is started on them.
const removedSuffix = ".removed"

// Remove stops a plane and deletes its data, unless a local cluster of it still runs.
func (p *Planes) Remove(ctx context.Context, uid types.UID) error {
	dir := p.DirOf(uid)
	if c := p.find(uid); c != nil {
		if err := c.stop(ctx); err != nil {
			return err
		}
	}
	l, err := lifecycle.New(dir)
	if err != nil {
		return err
	}
	if running, err := l.RunningClusters(); err != nil || len(running) > 0 {
		return fmt.Errorf("%d local clusters of it still run (%w)", len(running), err)
	}
	if err := os.Rename(dir, dir+removedSuffix); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.RemoveAll(dir + removedSuffix); err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.children, uid)
	p.mu.Unlock()
	p.report()
	return nil
}

// changed tells everybody that a plane has changed.
func (p *Planes) changed(namespace string) {
	p.mu.Lock()
	all := slices.Clone(p.notify)
	p.mu.Unlock()
	for _, f := range all {
		f(namespace)
	}
	p.report()
}

// report tells the state of all planes.
func (p *Planes) report() {
	p.mu.Lock()
	all := make([]*child, 0, len(p.children))
	for _, c := range p.children {
		all = append(all, c)
	}
	p.mu.Unlock()
	out := make([]status.TenantPlane, 0, len(all))
	for _, c := range all {
		out = append(out, c.describe())
	}
	slices.SortFunc(out, func(a, b status.TenantPlane) int { return strings.Compare(a.Namespace, b.Namespace) })
	p.cfg.Report(out)
}
