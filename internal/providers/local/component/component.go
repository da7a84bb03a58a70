// Package component makes polderd a binary of many names: called by one of them, it is that
// program. A local cluster's host, the boot of a machine and its static pods are processes of it,
// so nothing needs to be installed.
package component

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/logging"
	"github.com/polder-kaas/polder/internal/program/memory"
	"github.com/polder-kaas/polder/internal/providers/local/boot"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/host"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/partition"
)

// Program runs until ctx ends or its work is done, and returns an exit code.
type Program func(ctx context.Context) int

// ProgramFor is the program that argv[0] names, or nil if it is polderd itself. Those of etcd and Kubernetes read their
// arguments from os.Args and handle signals themselves, as the originals do.
func ProgramFor(argv []string) Program {
	return map[string]Program{
		"etcd":                    staticPod(func() int { return runEtcd(argv) }),
		"kube-apiserver":          staticPod(func() int { return cli.Run(apiserver.NewAPIServerCommand()) }),
		"kube-controller-manager": staticPod(func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) }),
		"kube-scheduler":          staticPod(func() int { return cli.Run(scheduler.NewSchedulerCommand()) }),
		launch.HostProgram:        directoryProgram(argv, runHost),
		host.BootProgram:          directoryProgram(argv, runBoot),
		confine.ProbeProgram:      directoryProgram(argv, runProbe),
	}[filepath.Base(argv[0])]
}

// memoryBurst is the garbage that may gather in a static pod while it has much to do, as at its start.
var memoryBurst = memory.Burst{Start: 48 << 20, Later: 48 << 20}

// staticPod confines a static pod to the root of its machine, where it is started, before it reads a single argument:
// people whom nobody trusts have written them. It tunes the garbage collector, since there are many on one computer.
func staticPod(run func() int) Program {
	return func(ctx context.Context) int {
		if _, err := confine.Enter(confine.Component, "."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go memory.TuneGC(ctx, memoryBurst)
		return run()
	}
}

// etcdPeerPort is where etcds speak to each other; package allowlist allows no other.
const etcdPeerPort = 2380

// runEtcd runs etcd, which is all of a machine that speaks to other machines directly.
func runEtcd(argv []string) int {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // etcd ends the process itself
	defer cancel()
	go partition.Watch(ctx, etcdPeerPort)
	etcdmain.Main(argv)
	return 0
}

func directoryProgram(argv []string, run func(context.Context, string) error) Program {
	return func(ctx context.Context) int {
		err := fmt.Errorf("usage: %s DIRECTORY", argv[0])
		if len(argv) == 2 {
			err = run(ctx, argv[1])
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", argv[0], err)
			return 1
		}
		return 0
	}
}

func runProbe(_ context.Context, dir string) error { return confine.Probe(dir) }

func runBoot(ctx context.Context, dir string) error {
	if _, err := confine.Enter(confine.Boot, dir); err != nil {
		return err
	}
	return boot.Run(ctx, hostapi.MachineDir(dir))
}

func runHost(ctx context.Context, dir string) error {
	confinement, err := confine.Enter(confine.Host, dir)
	if err != nil {
		return err
	}
	endpoint, err := confine.TakeEndpoint()
	if err != nil {
		return err
	}
	log, err := logging.New(logging.Options{Out: os.Stderr, Level: "info", Format: logging.FormatJSON})
	if err != nil {
		return err
	}
	logging.Install(log, func(message string) { log.Error("a library wants to end the host", "reason", message) })
	versions, err := kubeversion.NewRange(buildinfo.Get().Kubernetes)
	if err != nil {
		return err
	}
	return host.Run(ctx, host.Config{
		Dir: hostapi.Dir(dir), Binary: selfExecutable, Versions: versions, Clock: clock.RealClock{}, Log: log,
		Endpoint: endpoint, Confinement: confinement,
		Output: []*os.File{os.Stdout, os.Stderr},
	})
}

// selfExecutable is the program of the process that asks for it, also if its file was replaced since. The path of the
// file would lead a host of the last release, whose arguments fit that one, to processes of the next: a machine of the
// older minor would become one of the newer, and its etcd would raise its data for good.
const selfExecutable = "/proc/self/exe"
