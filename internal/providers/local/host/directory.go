package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// directoryCheckInterval is how often the host sees whether its directory is still there.
const directoryCheckInterval = 5 * time.Second

// stopWhenDirectoryRemoved ends the host, and all that runs in it, when somebody has removed its
// directory: there is nothing left to keep, and nobody could find or stop it any more.
func (h *Host) stopWhenDirectoryRemoved(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, directoryCheckInterval)
		if _, err := os.Stat(h.cfg.Dir.ClusterFile()); errors.Is(err, fs.ErrNotExist) {
			h.cfg.Log.Warn("the host's directory is gone; ending", "directory", string(h.cfg.Dir))
			h.mu.Lock()
			h.stopAtOnce = true
			h.mu.Unlock()
			h.quit()
			return
		}
	}
}
