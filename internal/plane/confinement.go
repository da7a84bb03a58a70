package plane

import (
	"context"
	"os"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/providers/local/confine"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// detectConfinement finds out what the kernel offers to confine local clusters, and says it.
func (p *Plane) detectConfinement(ctx context.Context) hostapi.Confinement {
	binary, err := os.Executable()
	if err != nil {
		return hostapi.Confinement{Missing: err.Error()}
	}
	c := confine.Detect(ctx, binary)
	if ctx.Err() != nil {
		return c // asked to stop meanwhile
	}
	text := "local clusters are confined by " + c.String()
	if !c.Complete() {
		text += "; customers get none"
		if p.cfg.Local.AllowUnconfined {
			text += ", but --local-unconfined lets them"
		}
		p.cfg.Log.Warn("the kernel offers too little to confine local clusters", "confinement", c.String())
	}
	p.reporter.update(func(s *status.Status) { s.Confinement = text })
	return c
}
