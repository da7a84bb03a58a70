// Package lifecycle starts, watches and stops a polderd from outside, for the polder command.
// It knows the running process only through its data directory.
package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/status"
)

// pollInterval is how often files are read while waiting.
const pollInterval = 50 * time.Millisecond

// Plane is the plane of one data directory, running or not.
type Plane struct {
	dir string
}

// New returns the plane in dir, which need not exist.
func New(dir string) (*Plane, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Plane{dir: abs}, nil
}

// Dir is the data directory.
func (p *Plane) Dir() string { return p.dir }

// Kubeconfig is where polderd writes the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }

// LogFile is where a polderd started in the background writes its log.
func (p *Plane) LogFile() string { return filepath.Join(p.dir, "polderd.log") }

// Report is what can be known about a plane from outside.
type Report struct {
	Running bool          `json:"running"`
	Status  status.Status `json:"status"`
	HasRun  bool          `json:"-"` // there has been a run in this directory
	Memory  Memory        `json:"memory"`
}

// Memory is that of a process, in bytes.
type Memory struct {
	Resident  uint64 `json:"resident"`
	Anonymous uint64 `json:"anonymous"`
}

// Inspect reads what can be known now.
func (p *Plane) Inspect() (Report, error) {
	var r Report
	pid, err := datadir.Holder(p.dir)
	if err != nil {
		return r, err
	}
	if r.Status, r.HasRun, err = status.Read(p.dir); err != nil {
		return r, err
	}
	r.Running = pid != 0
	if r.Running && r.Status.PID != pid {
		// It has the lock and has not written its status yet; the file is of an earlier run.
		r.Status, r.HasRun = status.Status{PID: pid, Phase: status.Starting}, true
	}
	if r.Running {
		r.Memory = ReadMemory(pid)
	}
	return r, nil
}

// Crashed says whether the last run ended without recording it: killed, or the machine went down.
func (r Report) Crashed() bool {
	return !r.Running && r.HasRun && r.Status.Phase != status.Stopped && r.Status.Phase != status.Failed
}

// ReadMemory reads the memory of a process; it is zero where the system does not tell.
func ReadMemory(pid int) Memory {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return Memory{}
	}
	var m Memory
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "VmRSS:":
			m.Resident = kib << 10
		case "RssAnon:":
			m.Anonymous = kib << 10
		}
	}
	return m
}

// poll calls look repeatedly until it is done, returns an error, or ctx ends.
func poll(ctx context.Context, look func() (done bool, err error)) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}
