package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/program/exit"
)

const lockName = "polderd.lock"

// acquireLock takes the lock. Its error says what to do if another process has it.
func acquireLock(dir string) (*os.File, error) {
	f, err := filelock.Acquire(filepath.Join(dir, lockName))
	var held *filelock.HeldError
	switch {
	case errors.As(err, &held):
		who := ""
		if held.PID > 0 {
			who = fmt.Sprintf(" (process %d)", held.PID)
		}
		return nil, exit.Errorf(exit.InUse,
			"data directory %s is already in use by polderd%s; stop that one with: polder down --data-dir %s", dir, who, dir)
	case err != nil:
		return nil, exit.Errorf(exit.DataDir, "data directory %s is not writable (%w); choose another with --data-dir", dir,
			unwrapPathError(err))
	}
	return f, nil
}

// Holder returns the process that holds the directory, or 0 if none does.
func Holder(path string) (int, error) {
	pid, err := filelock.Holder(filepath.Join(path, lockName))
	if err != nil {
		return 0, exit.Errorf(exit.DataDir, "data directory %s cannot be read (%w)", path, unwrapPathError(err))
	}
	return pid, nil
}
