// Package launch starts the hosts of local clusters, and finds those that run.
package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// HostProgram is polderd's name when it is a cluster's host.
const HostProgram = "polder-local-host"

// Launcher keeps hosts in one folder.
type Launcher struct {
	HostsDir string // see hostapi.HostsDir
	Binary   string // of polderd
	// Prepare, if there is one, changes the command of a host that is about to be started; release is called afterwards.
	Prepare func(c *exec.Cmd, dir hostapi.Dir) (release func(), err error)
}

// dirName is the same for the same cluster, and short, because the path of a socket must be.
func dirName(uid string) string {
	name := strings.ReplaceAll(uid, "-", "")
	return name[:min(12, len(name))]
}

// Dir is the directory of the host of the LocalCluster with this UID.
func (l Launcher) Dir(uid string) hostapi.Dir {
	return hostapi.Dir(filepath.Join(l.HostsDir, dirName(uid)))
}

// Clusters lists the clusters that have a host's directory, whether the host runs or not.
func (l Launcher) Clusters() ([]hostapi.Cluster, error) {
	dirs, err := os.ReadDir(l.HostsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []hostapi.Cluster
	for _, d := range dirs {
		f := hostapi.Dir(filepath.Join(l.HostsDir, d.Name())).ClusterFile()
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue // no host's, or being removed
		}
		var c hostapi.Cluster
		if err == nil {
			err = json.Unmarshal(b, &c)
		}
		if err != nil {
			// Not skipped: another cluster could get its block of addresses.
			return nil, fmt.Errorf("reading %s: %w", f, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// PrepareDir makes the host's directory, once.
func (l Launcher) PrepareDir(c hostapi.Cluster) error {
	dir := l.Dir(c.UID)
	if err := os.MkdirAll(dir.MachinesDir(), 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.Write(dir.ClusterFile(), b, 0o600)
}

// IsRunning says whether the host runs, by its lock.
func (l Launcher) IsRunning(uid string) (bool, error) {
	pid, err := filelock.Holder(l.Dir(uid).LockFile())
	return pid != 0, err
}

// Start starts the host if it does not run. The host does not end with this process. onExit is called if it ends before
// this process does.
func (l Launcher) Start(uid string, onExit func()) error {
	if running, err := l.IsRunning(uid); err != nil || running {
		return err
	}
	dir := l.Dir(uid)
	log, err := openLog(dir.LogFile())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the host has its own
	c := &exec.Cmd{
		Path: l.Binary, Args: []string{HostProgram, string(dir)}, Dir: string(dir),
		Env:    []string{"PATH=/usr/bin:/bin"},
		Stdout: log, Stderr: log,
		// A session of its own: signals for polderd's terminal or group must not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if l.Prepare != nil {
		release, err := l.Prepare(c, dir)
		if err != nil {
			return err
		}
		defer release()
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting the cluster's host: %w", err)
	}
	go func() {
		_ = c.Wait() // the log says why it ended
		onExit()
	}()
	return nil
}

// Remove ends the host with all that runs in it, and removes all its files. The file that names
// the cluster goes first: a host that was just started, and is not yet seen to run, ends without it.
func (l Launcher) Remove(ctx context.Context, uid string) error {
	if dirName(uid) == "" {
		return errors.New("removing a cluster's host: the cluster has no UID")
	}
	dir := l.Dir(uid)
	if err := os.Remove(dir.ClusterFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := l.Stop(ctx, uid, true); err != nil {
		return err
	}
	return os.RemoveAll(string(dir))
}

// Stop ends the host, at once or gracefully, and returns when it has ended.
func (l Launcher) Stop(ctx context.Context, uid string, atOnce bool) error {
	dir := l.Dir(uid)
	for {
		pid, err := filelock.Holder(dir.LockFile())
		if err != nil || pid == 0 {
			return err
		}
		// Asked in each round: a host that has just started has its lock before it answers.
		if err := hostapi.NewClient(dir).Stop(ctx, atOnce); err != nil && !errors.Is(err, hostapi.ErrNotRunning) {
			return fmt.Errorf("asking the cluster's host, process %d, to end: %w", pid, err)
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("the host of the cluster, process %d, does not end: %w", pid, ctx.Err())
		case <-t.C:
		}
	}
}
