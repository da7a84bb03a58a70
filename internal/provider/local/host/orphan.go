package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// lookForDirectory is how often the host sees whether its directory is still there.
const lookForDirectory = 5 * time.Second

// endWithDirectory ends the host, and all that runs in it, when somebody has removed its
// directory: there is nothing left to keep, and nobody could find or stop it any more.
func (h *Host) endWithDirectory(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, lookForDirectory)
		if _, err := os.Stat(h.cfg.Dir.ClusterFile()); errors.Is(err, fs.ErrNotExist) {
			h.cfg.Log.Warn("the host's directory is gone; ending", "directory", string(h.cfg.Dir))
			h.mu.Lock()
			h.now = true
			h.mu.Unlock()
			h.quit()
			return
		}
	}
}
