package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// Stop stops the hosts of these local clusters: all at the same time, each within limit. A running
// polderd would start them again, so stop it first. stopped are those that have ended, also if there is an error
// about others.
func (clusters RunningClusters) Stop(ctx context.Context, limit time.Duration) (stopped RunningClusters, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(clusters))
	var wg sync.WaitGroup
	for i, c := range clusters {
		wg.Go(func() { errs[i] = c.launcher.Stop(ctx, c.UID, false) })
	}
	wg.Wait()
	var failed []string
	code := exit.Failure
	for i, c := range clusters {
		if errs[i] == nil {
			stopped = append(stopped, c)
			continue
		}
		reason := errs[i].Error()
		if errors.Is(errs[i], context.DeadlineExceeded) {
			code, reason = exit.Timeout, fmt.Sprintf("not within %s", limit)
		}
		failed = append(failed, fmt.Sprintf("%s/%s (%s; see %s)", c.Namespace, c.Name, reason,
			c.launcher.Dir(c.UID).LogFile()))
	}
	if len(failed) == 0 {
		return stopped, nil
	}
	return stopped, exit.Errorf(code, "%d of %d local clusters have not stopped: %s", len(failed), len(clusters),
		strings.Join(failed, ", "))
}
