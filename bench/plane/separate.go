package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
	"github.com/polder-kaas/polder/internal/plane/pki"
)

// separate is the other side: the same parts, each a process of its own. Where there is a
// choice it gets the cheaper one, so that the comparison errs in its favour: everything that
// can start at the same time does, nobody elects a leader, no metrics are served.
type separate struct {
	cfg config
	*processes
	ports     ports
	keys      *pki.PKI
	manifests manifests.Index
}

// measureSeparate measures this side empty and with clusters.
func (b *bench) measureSeparate(ctx context.Context) error {
	return withSeparate(b.config, func(s *separate) error { return s.measure(ctx, &b.separate) })
}

// startSeparate only shows how long a first start takes.
func (b *bench) startSeparate(ctx context.Context) error {
	return b.separate.addStarts(b.starts-1, func() (e effort, err error) {
		err = withSeparate(b.config, func(s *separate) (err error) { e, _, err = s.run(ctx); return err })
		return e, err
	})
}

// withSeparate runs do with new directories and cleans up.
func withSeparate(cfg config, do func(*separate) error) (err error) {
	ps, err := newProcesses(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ps.close()) }()
	s, err := newSeparate(cfg, ps)
	if err != nil {
		return err
	}
	return do(s)
}

func (s *separate) measure(ctx context.Context, r *result) error {
	e, a, err := s.run(ctx)
	if err != nil {
		return err
	}
	r.starts = append(r.starts, e)
	scenario.Logf("separate processes: measuring, idle")
	if r.idle, err = settled(ctx, s.cfg, s.processes); err != nil {
		return err
	}
	scenario.Logf("separate processes: building %d clusters", s.cfg.clusters)
	if r.build, err = buildClusters(ctx, s.processes, a, s.cfg.clusters); err != nil {
		return err
	}
	scenario.Logf("separate processes: measuring, loaded")
	r.loaded, err = settled(ctx, s.cfg, s.processes)
	return err
}

// newSeparate does what polderd does before its first component starts: its time is not counted, which again is in
// favour of this side.
func newSeparate(cfg config, ps *processes) (*separate, error) {
	s := &separate{cfg: cfg, processes: ps}
	var err error
	if s.manifests, err = manifests.Load(); err != nil {
		return nil, err
	}
	if s.ports, err = freePorts(); err != nil {
		return nil, err
	}
	// One certificate for 127.0.0.1 serves the API and the webhooks.
	if s.keys, err = pki.New(pki.Config{Dir: s.path("pki"), Server: s.ports.url(apiServer),
		Kubeconfig: s.path("unused.kubeconfig")}); err != nil {
		return nil, err
	}
	return s, s.writeUsers()
}

// run starts everything and waits until Cluster API works.
func (s *separate) run(ctx context.Context) (effort, access, error) {
	a, err := newAccess(s.kubeconfig(admin))
	if err != nil {
		return effort{}, a, err
	}
	if err := warm(separatePrograms(s.cfg)...); err != nil {
		return effort{}, a, err
	}
	scenario.Logf("separate processes: starting on an empty directory")
	begin := time.Now()
	if err := s.startAll(ctx, a); err != nil {
		return effort{}, a, err
	}
	e, err := s.effortSince(begin, 0)
	return e, a, errors.Join(err, s.deleteProbe(ctx, a))
}

// startAll starts the parts in the order in which they need each other.
func (s *separate) startAll(ctx context.Context, a access) error {
	if err := s.launch(etcd, apiServer); err != nil {
		return err
	}
	if err := s.await(ctx, "the API server", soon, a.serves); err != nil {
		return err
	}
	if err := s.launch(controllerManager); err != nil {
		return err
	}
	if err := s.install(ctx, a); err != nil {
		return fmt.Errorf("installing custom resource definitions: %w", err)
	}
	if err := s.await(ctx, "the new kinds", soon, a.lists); err != nil { // a manager that starts earlier ends, and would be restarted
		return err
	}
	if err := s.launch(managers...); err != nil {
		return err
	}
	if err := s.registerWebhooks(ctx, a); err != nil {
		return fmt.Errorf("registering webhooks: %w", err)
	}
	return s.await(ctx, "Cluster API", soon, a.ready)
}

func (s *separate) launch(names ...string) error {
	for _, name := range names {
		if _, err := s.start(s.cfg.program("bench/"+name), s.args(name)...); err != nil {
			return err
		}
	}
	return nil
}
