package host

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/process"
)

// BootProgram is polderd's name when it boots a machine.
const BootProgram = "polder-boot"

// bootPollInterval is how often the boot's progress is looked at.
const bootPollInterval = 250 * time.Millisecond

// runBoot runs the boot process until it has succeeded, again and again if it fails.
func (m *machine) runBoot(ctx context.Context) {
	if m.isBooted() {
		return
	}
	release := m.acquireBootSlot(ctx)
	defer release()
	if ctx.Err() != nil {
		return
	}
	if err := m.writeCluster(); err != nil {
		m.host.cfg.Log.Warn("the boot cannot be told its cluster", "machine", m.spec.Name, "error", err)
	}
	ended := make(chan struct{}, 1)
	p := process.Start(m.host.forker, process.Spec{
		Name: "boot of " + m.spec.Name, Path: m.host.cfg.Binary, Args: []string{BootProgram, string(m.dir)},
		Dir: m.dir.RootFS(), Env: append(confine.Environment(), "PATH=/usr/bin:/bin", "HOME="+m.dir.RootFS("/root")),
		Log: logfile.File{Path: m.dir.LogFile("boot")},
	}, func(s process.State) {
		m.bootProcessState.Store(&s)
		if s.PID == 0 {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	})
	defer p.Kill()
	m.watchBoot(ctx, ended, release)
}

// writeCluster tells the boot which cluster it is in: the boot looks at nothing outside of its machine's directory.
func (m *machine) writeCluster() error {
	b, err := json.Marshal(m.host.cluster)
	if err != nil {
		return err
	}
	return atomicfile.Write(m.dir.ClusterFile(), b, 0o600)
}

// acquireBootSlot waits while too many workers boot. A worker has its slot for the first attempt only, so that one that
// cannot succeed is in nobody's way; a control plane needs none, because the workers that have them may be waiting for
// it.
func (m *machine) acquireBootSlot(ctx context.Context) (release func()) {
	if m.spec.ControlPlane {
		return func() {}
	}
	select {
	case m.host.bootSlots <- struct{}{}:
		return sync.OnceFunc(func() { <-m.host.bootSlots })
	case <-ctx.Done():
		return func() {}
	}
}

// watchBoot notifies of the boot's progress until it is done. releaseSlot is called when an attempt has ended.
func (m *machine) watchBoot(ctx context.Context, ended <-chan struct{}, releaseSlot func()) {
	tick := time.NewTicker(bootPollInterval)
	defer tick.Stop()
	var seen time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			releaseSlot()
			seen = time.Time{} // two writes can have the same time, and the last one must not be missed
			m.host.notifyChange()
		case <-tick.C:
		}
		info, err := os.Stat(m.dir.BootFile())
		if err != nil || info.ModTime().Equal(seen) {
			continue
		}
		seen = info.ModTime()
		m.host.notifyChange()
		if m.isBooted() {
			return
		}
	}
}

// bootProblem is why the boot process ended, if it could not say so itself.
func (m *machine) bootProblem() string {
	s := m.bootProcessState.Load()
	if s == nil || s.PID != 0 || s.LastExit == nil || s.LastExit.Code == 0 {
		return ""
	}
	return "the boot process " + s.LastExit.String()
}

func (m *machine) isBooted() bool {
	var b hostapi.BootStatus
	return readJSON(m.dir.BootFile(), &b) == nil && b.Done
}
