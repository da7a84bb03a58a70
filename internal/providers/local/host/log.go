package host

import (
	"context"
	"time"

	"github.com/polder-kaas/polder/internal/files/logfile"
)

// logCheckInterval is how often the host looks at the size of its log.
const logCheckInterval = 5 * time.Second

// rotateLog keeps the host's log within its bounds until ctx ends. It is the output of the process, not only of its
// logger, that is rotated: the stack trace of a crash must be in the log as well.
func (h *Host) rotateLog(ctx context.Context) {
	file := logfile.File{Path: h.cfg.Dir.LogFile()}
	tick := h.cfg.Clock.NewTicker(logCheckInterval)
	defer tick.Stop()
	lastLogged := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		err := file.RotateOutput(h.cfg.Output...)
		if err != nil && err.Error() != lastLogged {
			lastLogged = err.Error()
			h.cfg.Log.Warn("the host's log cannot be set aside", "error", err)
		}
	}
}
