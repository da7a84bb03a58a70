package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/polder-kaas/polder/internal/plane/status"
)

// polderd is our side: one process on a data directory.
type polderd struct {
	cfg config
	*processes
}

// measurePolderd starts polderd on two directories and more. On the first the clusters are built,
// and polderd starts again with all of them; the second stays empty and shows what a restart
// costs by itself; the others only show how long a first start takes.
func measurePolderd(ctx context.Context, cfg config) (fresh, restarted result, err error) {
	host, err := readHostTime()
	if err != nil {
		return fresh, restarted, err
	}
	err = withPolderd(cfg, func(p polderd) (err error) {
		if fresh, err = p.fresh(ctx); err != nil {
			return err
		}
		restarted, err = p.restartLoaded(ctx)
		return err
	})
	if err != nil {
		return fresh, restarted, err
	}
	if err := withPolderd(cfg, func(p polderd) error { return p.restartEmpty(ctx, &restarted) }); err != nil {
		return fresh, restarted, err
	}
	err = medianReady(cfg, &fresh, func() (e effort, err error) {
		err = withPolderd(cfg, func(p polderd) (err error) { e, _, err = p.run(ctx, "on an empty directory"); return err })
		return e, err
	})
	if err != nil {
		return fresh, restarted, err
	}
	if fresh.stolen, err = host.stolenSince(); err != nil {
		return fresh, restarted, err
	}
	fresh.binaries, err = size(cfg.program("polderd"))
	restarted.stolen, restarted.binaries = fresh.stolen, fresh.binaries
	return fresh, restarted, err
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

func (p polderd) fresh(ctx context.Context) (r result, err error) {
	var a access
	if r.ready, a, err = p.run(ctx, "on an empty directory"); err != nil {
		return r, err
	}
	if r.idle, err = p.sample(ctx, a, "fresh-idle"); err != nil {
		return r, err
	}
	p.progress.Printf("polderd: building %d clusters", p.cfg.clusters)
	if r.build, err = buildClusters(ctx, p.processes, a, p.cfg.clusters); err != nil {
		return r, err
	}
	r.loaded, err = p.sample(ctx, a, "fresh-loaded")
	p.stop()
	return r, err
}

func (p polderd) restartLoaded(ctx context.Context) (r result, err error) {
	var a access
	if r.readyLoaded, a, err = p.run(ctx, "again, with clusters"); err != nil {
		return r, err
	}
	r.loaded, err = p.sample(ctx, a, "restarted-loaded")
	return r, err
}

// restartEmpty measures a restart without clusters, and adds the figures to r.
func (p polderd) restartEmpty(ctx context.Context, r *result) error {
	if _, _, err := p.run(ctx, "on a directory that will be used again"); err != nil {
		return err
	}
	p.stop()
	e, a, err := p.run(ctx, "again, without clusters")
	if err != nil {
		return err
	}
	r.ready = e
	if r.idle, err = p.sample(ctx, a, "restarted-idle"); err != nil {
		return err
	}
	return medianReady(p.cfg, r, func() (effort, error) {
		p.stop()
		e, _, err := p.run(ctx, "again, without clusters")
		return e, err
	})
}

// run starts polderd and waits until it says that it is ready, and Cluster API works.
func (p polderd) run(ctx context.Context, why string) (effort, access, error) {
	if err := warm(p.cfg.program("polderd")); err != nil {
		return effort{}, access{}, err
	}
	p.progress.Printf("polderd: starting %s", why)
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
	args := []string{"serve", "--data-dir", p.path("data"), "--listen", "127.0.0.1:0", "--log-format", "json", "--no-shipped-stacks"}
	if p.cfg.profiles != "" {
		args = append(args, "--profiling")
	}
	proc, err := p.start(p.cfg.program("polderd"), args...)
	if err != nil {
		return "", err
	}
	err = p.await(ctx, "polderd", soon, func(context.Context) error {
		s, _, err := status.Read(p.path("data"))
		if err == nil && (s.PID != proc.cmd.Process.Pid || s.Phase != status.Ready) {
			err = fmt.Errorf("process %d is %q", s.PID, s.Phase)
		}
		kubeconfig = s.Kubeconfig
		return err
	})
	return kubeconfig, err
}

// sample measures and, if profiles are wanted, writes a heap profile of the same moment.
func (p polderd) sample(ctx context.Context, a access, name string) (sample, error) {
	p.progress.Printf("polderd: measuring, %s", name)
	s, err := settled(ctx, p.cfg, p.processes)
	if err != nil || p.cfg.profiles == "" {
		return s, err
	}
	return s, a.profile(ctx, p.cfg.profiles, name)
}
