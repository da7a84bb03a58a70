// Package status has what a running polderd tells other processes about itself: a small file in the data
// directory, rewritten at each change of state, readable when the API is not.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
)

const fileName = "status.json"

// Phase is the state of the plane as a whole.
type Phase string

// The phases of a plane.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Stopping Phase = "stopping"
	Stopped  Phase = "stopped"
	Failed   Phase = "failed"
)

// Status describes one run of polderd. After the process has ended it says how.
type Status struct {
	PID        int        `json:"pid"`
	Phase      Phase      `json:"phase"`
	Reason     string     `json:"reason,omitempty"`
	StartedAt  time.Time  `json:"startedAt"`
	ReadyAt    *time.Time `json:"readyAt,omitempty"`
	Address    string     `json:"address"`
	REST       string     `json:"rest,omitempty"` // URL of the API for customers, if it is served
	Kubeconfig string     `json:"kubeconfig"`
	Stacks     string     `json:"stacks,omitempty"` // the default source of cluster stacks
	// Confinement says what confines local clusters on this machine; empty until it is known.
	Confinement string              `json:"confinement,omitempty"`
	Versions    buildinfo.Info      `json:"versions"`
	Components  []supervisor.Status `json:"components"`
	Backup      *Backup             `json:"backup,omitempty"` // nil if none are scheduled
	Login       *Login              `json:"login,omitempty"`  // nil if nobody can log in with tokens of others
	// TenantPlanes are those of tenants that have one of their own.
	TenantPlanes []TenantPlane `json:"tenantPlanes,omitempty"`
}

// TenantPlane says how the plane of one tenant is.
type TenantPlane struct {
	Namespace string `json:"namespace"`
	Tenant    string `json:"tenant"`
	Ready     bool   `json:"ready"`
	Phase     string `json:"phase"`
	Message   string `json:"message,omitempty"` // why it is not ready
	PID       int    `json:"pid,omitempty"`
	DataDir   string `json:"dataDir"`
}

// Login says whose tokens are believed.
type Login struct {
	File    string   `json:"file"` // the operator's AuthenticationConfiguration
	Issuers []string `json:"issuers"`
	Pending bool     `json:"pending,omitempty"` // the API server does not use it yet
	Problem string   `json:"problem,omitempty"`
}

// Backup says how the scheduled backups are.
type Backup struct {
	Dir          string      `json:"dir"`
	Every        string      `json:"every"`
	Keep         int         `json:"keep"`
	Last         *BackupFile `json:"last,omitempty"`         // the newest one there is
	Next         *time.Time  `json:"next,omitempty"`         // when one will be tried
	Problem      string      `json:"problem,omitempty"`      // why the last try failed
	FailingSince *time.Time  `json:"failingSince,omitempty"` // when tries began to fail
}

// BackupFile is a backup that was written.
type BackupFile struct {
	Path      string    `json:"path"`
	CreatedAt time.Time `json:"createdAt"`
	Size      int64     `json:"size"`
	Seconds   float64   `json:"seconds,omitempty"` // that it took; unknown if an earlier run wrote it
}

// Write replaces the status of the plane in dir. If the disk syncs nothing, which may be what there is to say, it is
// written all the same.
func Write(dir string, s Status) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	path, b := filepath.Join(dir, fileName), append(b, '\n')
	if err := atomicfile.Write(path, b, 0o600); err != nil {
		return errors.Join(err, atomicfile.WriteUnsynced(path, b, 0o600))
	}
	return nil
}

// Read returns the last status written in dir; ok is false if there never was one.
func Read(dir string) (s Status, ok bool, err error) {
	path := filepath.Join(dir, fileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("reading status: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, false, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return s, true, nil
}
