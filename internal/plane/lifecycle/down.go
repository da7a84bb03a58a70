package lifecycle

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Down asks the plane to stop and waits until it has released its data directory. ran is false if there was
// nothing to stop, which is no error.
func (p *Plane) Down(ctx context.Context, timeout time.Duration) (ran bool, err error) {
	pid, err := datadir.Holder(p.dir)
	if err != nil || pid == 0 {
		return false, err
	}
	switch err := syscall.Kill(pid, syscall.SIGTERM); {
	case errors.Is(err, syscall.EPERM):
		return true, exit.Errorf(exit.Failure, "polderd (process %d) belongs to another user; run polder down as that user",
			pid)
	case err != nil && !errors.Is(err, syscall.ESRCH):
		return true, exit.Errorf(exit.Failure, "stopping polderd (process %d): %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The lock is watched, not the process: it is released last, and another process may get the same number.
	err = poll(ctx, func() (bool, error) {
		now, err := datadir.Holder(p.dir)
		return now != pid, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return true, exit.Errorf(exit.Timeout, "polderd (process %d) has not stopped within %s; see %s", pid, timeout,
			p.LogFile())
	}
	return true, err
}
