package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/program/exit"
)

const markerName = "version.json"

// Format is the layout of the data directory this code writes. Raise it when an older
// polderd could no longer read, or would damage, what a newer one wrote.
const Format = 1

// Marker says which versions wrote a data directory last.
type Marker struct {
	Format     int    `json:"format"`
	Polder     string `json:"polder"`
	Kubernetes string `json:"kubernetes"` // objects may be stored in versions an older API server does not know
	Etcd       string `json:"etcd"`       // etcd reads only one minor back
}

// checkAndWriteMarker refuses data of a newer version and otherwise records this one.
func checkAndWriteMarker(dir string, now Marker) error {
	path := filepath.Join(dir, markerName)
	old, err := readMarker(path)
	if err != nil {
		return exit.With(exit.DataDir, err)
	}
	if err := old.checkNotNewerThan(now); err != nil {
		return exit.Errorf(exit.NewerData,
			"data directory %s was written by polder %s: %w; start that version or a newer one, or choose another directory with --data-dir", dir, old.Polder, err)
	}
	if old == now {
		return nil
	}
	b, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	return exit.With(exit.DataDir, atomicfile.Write(path, append(b, '\n'), 0o600))
}

// HasMarker reports whether a directory is one of a plane.
func HasMarker(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markerName))
	return err == nil
}

func readMarker(path string) (Marker, error) {
	var m Marker
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("reading %s: %w", path, unwrapPathError(err))
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf(
			"%s is damaged (%w); restore it from a backup, or move it away if you are sure that this version may open the data",
			path, err,
		)
	}
	return m, nil
}

func (m Marker) checkNotNewerThan(now Marker) error {
	switch {
	case m.Format > now.Format:
		return fmt.Errorf("its format is %d, this version knows up to %d", m.Format, now.Format)
	case isNewerMinor(m.Kubernetes, now.Kubernetes):
		return fmt.Errorf("it holds objects of Kubernetes %s, this version has %s", m.Kubernetes, now.Kubernetes)
	case isNewerMinor(m.Etcd, now.Etcd):
		return fmt.Errorf("its store is of etcd %s, this version has %s", m.Etcd, now.Etcd)
	}
	return nil
}

// isNewerMinor compares major and minor only: patches share their storage formats.
// Versions that are not semantic versions (a development build's) never refuse.
func isNewerMinor(a, b string) bool {
	return semver.IsValid(a) && semver.IsValid(b) && semver.Compare(semver.MajorMinor(a), semver.MajorMinor(b)) > 0
}
