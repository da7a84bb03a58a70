package backupfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of backups in a directory: they tell the moment, and sort by it.
const (
	namePrefix = "polder-"
	nameTime   = "20060102T150405Z"
	suffix     = ".tar.zst"
	ageSuffix  = ".age"
)

// Name is the name of a backup that is made now.
func Name(now time.Time, k Keys) string {
	name := namePrefix + now.UTC().Format(nameTime) + suffix
	if k.Plaintext {
		return name
	}
	return name + ageSuffix
}

// Info is a backup in a directory.
type Info struct {
	Path      string    `json:"path"`
	CreatedAt time.Time `json:"createdAt"`
	Size      int64     `json:"size"`
	Encrypted bool      `json:"encrypted"`
}

// List returns the backups in a directory that have names as Name makes them, the newest first. There need not be a
// directory.
func List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing backups: %w", err)
	}
	var all []Info
	for _, e := range entries {
		at, encrypted, ok := parseName(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed meanwhile
		}
		all = append(all, Info{
			Path: filepath.Join(dir, e.Name()), CreatedAt: at, Size: info.Size(), Encrypted: encrypted,
		})
	}
	slices.SortFunc(all, func(a, b Info) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Path, b.Path))
	})
	return all, nil
}

func parseName(name string) (at time.Time, encrypted, ok bool) {
	name, encrypted = strings.CutSuffix(name, ageSuffix)
	name, ok = strings.CutSuffix(name, suffix)
	if !ok {
		return at, false, false
	}
	if name, ok = strings.CutPrefix(name, namePrefix); !ok {
		return at, false, false
	}
	at, err := time.Parse(nameTime, name)
	return at, encrypted, err == nil
}

// Prune removes all backups of a directory but the newest ones.
func Prune(dir string, keep int) error {
	all, err := List(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all[min(keep, len(all)):] {
		errs = append(errs, os.Remove(b.Path))
	}
	return errors.Join(errs...)
}

// RemoveParts removes what backups left that were killed while they were written. Nobody else may write to the
// directory meanwhile.
func RemoveParts(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, partPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		errs = append(errs, os.Remove(p))
	}
	return errors.Join(errs...)
}
