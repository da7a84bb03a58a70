package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/internal/plane/status"
)

// polderd is our side: one process on a data directory.
type polderd struct {
	cfg config
	*processes
}

// measurePolderd starts polderd on an empty directory, builds the clusters, and starts it again with all of them.
func (b *bench) measurePolderd(ctx context.Context) error {
	return withPolderd(b.config, func(p polderd) error {
		if err := p.measureFresh(ctx, &b.fresh); err != nil {
			return err
		}
		return p.restartLoaded(ctx, &b.restarted)
	})
}

// measureRestart shows what a restart costs by itself, on a directory that stays empty.
func (b *bench) measureRestart(ctx context.Context) error {
	return withPolderd(b.config, func(p polderd) error { return p.restartEmpty(ctx, &b.restarted) })
}

// startPolderd only shows how long a first start takes.
func (b *bench) startPolderd(ctx context.Context) error {
	return b.fresh.addStarts(b.starts-1, func() (e effort, err error) {
		err = withPolderd(b.config, func(p polderd) (err error) {
			e, _, err = p.run(ctx, "on an empty directory")
			return err
		})
		return e, err
	})
}

// withPolderd runs do with a new directory and cleans up.
func withPolderd(cfg config, do func(polderd) error) (err error) {
	ps, err := newProcesses(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ps.close()) }()
	return do(polderd{cfg, ps})
}

func (p polderd) measureFresh(ctx context.Context, r *result) error {
	e, a, err := p.run(ctx, "on an empty directory")
	if err != nil {
		return err
	}
	r.starts = append(r.starts, e)
	if r.idle, err = p.sample(ctx, a, "fresh-idle"); err != nil {
		return err
	}
	scenario.Logf("polderd: building %d clusters", p.cfg.clusters)
	if r.build, err = buildClusters(ctx, p.processes, a, p.cfg.clusters); err != nil {
		return err
	}
	r.loaded, err = p.sample(ctx, a, "fresh-loaded")
	p.stop()
	return err
}

func (p polderd) restartLoaded(ctx context.Context, r *result) error {
	e, a, err := p.run(ctx, "again, with clusters")
	if err != nil {
		return err
	}
	r.readyLoaded = e
	r.loaded, err = p.sample(ctx, a, "restarted-loaded")
	return err
}

// restartEmpty measures restarts without clusters.
func (p polderd) restartEmpty(ctx context.Context, r *result) error {
	if _, _, err := p.run(ctx, "on a directory that will be used again"); err != nil {
		return err
	}
	var a access
	restart := func() (e effort, err error) {
		p.stop()
		e, a, err = p.run(ctx, "again, without clusters")
		return e, err
	}
	if err := r.addStarts(1, restart); err != nil {
		return err
	}
	var err error
	if r.idle, err = p.sample(ctx, a, "restarted-idle"); err != nil {
		return err
	}
	return r.addStarts(p.cfg.starts-1, restart)
}

// run starts polderd and waits until it says that it is ready, and Cluster API works.
func (p polderd) run(ctx context.Context, why string) (effort, access, error) {
	if err := warm(p.cfg.program("polderd")); err != nil {
		return effort{}, access{}, err
	}
	scenario.Logf("polderd: starting %s", why)
	begin := time.Now()
	kubeconfig, err := p.serve(ctx)
	if err != nil {
		return effort{}, access{}, err
	}
	a, err := newAccess(kubeconfig)
	if err != nil {
		return effort{}, a, err
	}
	if err := p.await(ctx, "Cluster API", soon, a.ready); err != nil {
		return effort{}, a, err
	}
	e, err := p.effortSince(begin, 0)
	return e, a, errors.Join(err, p.deleteProbe(ctx, a))
}

func (p polderd) serve(ctx context.Context) (kubeconfig string, err error) {
	args := []string{
		"serve", "--data-dir", p.path("data"), "--listen", "127.0.0.1:0", "--log-format", "json", "--no-shipped-stacks",
	}
	if p.cfg.profiles != "" {
		args = append(args, "--profiling")
	}
	proc, err := p.start(p.cfg.program("polderd"), args...)
	if err != nil {
		return "", err
	}
	err = p.await(ctx, "polderd", soon, func(context.Context) error {
		s, _, err := status.Read(p.path("data"))
		if err == nil && (s.PID != proc.PID() || s.Phase != status.Ready) {
			err = fmt.Errorf("process %d is %q", s.PID, s.Phase)
		}
		kubeconfig = s.Kubeconfig
		return err
	})
	return kubeconfig, err
}

// sample measures and, if profiles are wanted, writes a heap profile of the same moment.
func (p polderd) sample(ctx context.Context, a access, name string) (sample, error) {
	scenario.Logf("polderd: measuring, %s", name)
	s, err := settled(ctx, p.cfg, p.processes)
	if err != nil || p.cfg.profiles == "" {
		return s, err
	}
	return s, a.profile(ctx, p.cfg.profiles, name)
}
