package host

import (
	"context"
	"os"
	"time"

	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/provider/local/process"
)

// BootProgram is polderd's name when it boots a machine.
const BootProgram = "polder-boot"

// bootLook is how often the boot's progress is looked at.
const bootLook = 250 * time.Millisecond

// boot runs the boot process until it has succeeded, again and again if it fails.
func (m *machine) boot(ctx context.Context) {
	if m.booted() {
		return
	}
	select {
	case m.host.boots <- struct{}{}:
		defer func() { <-m.host.boots }()
	case <-ctx.Done():
		return
	}
	ended := make(chan struct{}, 1)
	p := process.Start(m.host.forker, process.Spec{
		Name: "boot of " + m.spec.Name, Path: m.host.cfg.Binary, Args: []string{BootProgram, string(m.dir)},
		Dir: m.dir.Files(), Env: []string{"PATH=/usr/bin:/bin", "HOME=" + m.dir.Files("/root")}, Log: process.LogFile{Path: m.dir.Log("boot")},
	}, func(s process.State) {
		if s.PID == 0 {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	})
	defer p.Kill()
	m.follow(ctx, ended)
}

// follow passes on the boot's progress until it is done.
func (m *machine) follow(ctx context.Context, ended <-chan struct{}) {
	tick := time.NewTicker(bootLook)
	defer tick.Stop()
	var seen time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-tick.C:
		}
		info, err := os.Stat(m.dir.BootFile())
		if err != nil || info.ModTime().Equal(seen) {
			continue
		}
		seen = info.ModTime()
		m.host.changed()
		if m.booted() {
			return
		}
	}
}

func (m *machine) booted() bool {
	var b hostapi.Boot
	return readJSON(m.dir.BootFile(), &b) == nil && b.Done
}
