package plane

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/cmdline"
)

// versionReport is what `polder version` knows: itself, and the plane if it has run.
type versionReport struct {
	Polder buildinfo.Info  `json:"polder"`
	Plane  *buildinfo.Info `json:"plane,omitempty"`
}

// NewVersionCommand is polder version: that of polder, and that of the plane if it runs.
func NewVersionCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "version",
		Short: "Say the version of polder and of the running plane",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versionReport{Polder: buildinfo.Get()}
			if p, err := g.Plane(); err == nil {
				if r, err := p.Inspect(); err == nil && r.Running && r.Status.Versions.Version != "" {
					v.Plane = &r.Status.Versions
				}
			}
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), v)
			}
			if _, err := fmt.Fprintf(c.OutOrStdout(), "polder %s (Go %s, %s)\n", v.Polder.Version, v.Polder.Go,
				v.Polder.Platform); err != nil || v.Plane == nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "plane  %s\n", describeVersions(*v.Plane))
			return err
		},
	}
	out.AddFlags(c)
	return c
}

// describeVersions has what is built in, since that decides which Kubernetes is offered.
func describeVersions(v buildinfo.Info) string {
	return fmt.Sprintf("%s (Kubernetes %s, Cluster API %s, etcd %s)", v.Version, v.Kubernetes, v.ClusterAPI, v.Etcd)
}
