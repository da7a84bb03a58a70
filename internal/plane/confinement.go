package plane

import (
	"context"
	"os"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/providers/local/cgroup"
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
	c.Cgroup = p.findCgroup() != nil
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

// findCgroup returns the cgroup in which local clusters are bounded, or nil if none is delegated.
func (p *Plane) findCgroup() *cgroup.Parent {
	parent, err := cgroup.Find()
	if err != nil {
		p.cfg.Log.Debug("the processes of a local cluster are not bounded together", "reason", err.Error())
		return nil
	}
	return parent
}
