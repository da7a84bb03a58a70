package plane

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	planestatus "github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// report is what `polder status` prints.
type report struct {
	lifecycle.Report
	DataDir string `json:"dataDir"`
	Ready   bool   `json:"ready"`
	Summary string `json:"summary"`
	// LocalClusters run whether or not the plane does.
	LocalClusters        []localcluster.Report `json:"localClusters"`
	LocalClustersProblem string                `json:"localClustersProblem,omitempty"` // why they cannot be listed
}

// NewStatusCommand is polder status: it says how the plane of the data directory is, and ends with exit.NotReady if
// that is not ready.
func NewStatusCommand(g *connect.Globals) *cobra.Command {
	var out output.Format
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how the management plane is: components, memory, address, versions",
		Long: fmt.Sprintf(`status tells what the plane says about itself and asks its API whether that is still true.
It exits with 0 if the plane is ready and with %d if it is not, or does not run.`, exit.NotReady),
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			r, err := inspectPlane(c.Context(), p)
			if err != nil {
				return err
			}
			if out.IsStructured() {
				err = out.Print(c.OutOrStdout(), r)
			} else {
				err = r.printTable(c.OutOrStdout(), g.Now())
			}
			if err == nil && !r.Ready {
				return exit.With(exit.NotReady, output.ErrSilent)
			}
			return err
		},
	}
	out.AddFlags(c)
	return c
}

// inspectPlane joins what the plane wrote with what its API says now.
func inspectPlane(ctx context.Context, p *lifecycle.Plane) (report, error) {
	r := report{DataDir: p.Dir()}
	var err error
	if r.Report, err = p.Inspect(); err != nil {
		return r, err
	}
	s := &r.Status
	full := datadir.CheckSpace(p.Dir())
	switch {
	case r.HasRun && !r.Running && full != nil:
		r.Summary = "It does not run: " + full.Error() + ". Nothing it acknowledged is lost."
	case !r.HasRun:
		r.Summary = "There is no plane here yet; polder up makes one."
	case r.Crashed():
		r.Summary = "It does not run: the last run was killed or crashed. Nothing it acknowledged is lost; polder up starts it again."
	case !r.Running && s.Phase == planestatus.Failed:
		r.Summary = "It does not run: the last run failed: " + s.Reason
	case !r.Running:
		r.Summary = "It does not run; polder up starts it."
	case s.Phase != planestatus.Ready:
		r.Summary = fmt.Sprintf("It is %s.", s.Phase)
	default:
		r.Ready, r.Summary = checkLiveness(ctx, p, s)
	}
	r.addLocalClusters(p.LocalClusters(ctx))
	return r, nil
}

// addLocalClusters keeps an error as a word: it says nothing about the plane.
func (r *report) addLocalClusters(all localcluster.List, err error) {
	r.LocalClusters = all.Reports()
	if err != nil {
		r.LocalClustersProblem = err.Error()
	}
}

// checkLiveness corrects the components' states by what the API answers.
func checkLiveness(ctx context.Context, p *lifecycle.Plane, s *planestatus.Status) (bool, string) {
	failing, err := p.FailingComponents(ctx)
	if err != nil {
		return false, fmt.Sprintf("It runs, but its API does not answer: %v; see %s", err, p.LogFile())
	}
	if len(failing) == 0 {
		return true, "It is ready."
	}
	for i := range s.Components {
		if reason, fails := failing[s.Components[i].Name]; fails {
			s.Components[i].State, s.Components[i].Message = supervisor.Failed, cmp.Or(reason, "its check fails now")
		}
	}
	return false, fmt.Sprintf("It runs, but %d of its checks fail; see %s", len(failing), p.LogFile())
}

// printTable leaves out what only a running polderd has: its status file may be of an earlier run.
func (r report) printTable(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "Plane:\t%s\n", r.Summary)
	fmt.Fprintf(t, "Data:\t%s\n", r.DataDir)
	if r.Running {
		fmt.Fprintf(t, "Address:\t%s\n", r.Status.Address)
		if r.Status.REST != "" {
			fmt.Fprintf(t, "REST API:\t%s\n", r.Status.REST)
		}
		fmt.Fprintf(t, "Kubeconfig:\t%s\n", r.Status.Kubeconfig)
		fmt.Fprintf(t, "Process:\t%d, up %s\n", r.Status.PID, output.Age(now, r.Status.StartedAt))
		fmt.Fprintf(t, "Memory:\t%d MB, %d MB of it not shared with the binary on disk\n", r.Memory.Resident>>20,
			r.Memory.Anonymous>>20)
		fmt.Fprintf(t, "Versions:\tpolder %s\n", describeVersions(r.Status.Versions))
		if r.Status.Confinement != "" {
			fmt.Fprintf(t, "Confinement:\t%s\n", r.Status.Confinement)
		}
	}
	if r.Running && r.Status.Backup != nil {
		fmt.Fprintf(t, "Backups:\t%s\n", describeBackups(*r.Status.Backup, now))
	}
	if r.Running && r.Status.Login != nil {
		fmt.Fprintf(t, "Login:\t%s\n", describeLogin(*r.Status.Login))
	}
	if r.Running && len(r.Status.TenantPlanes) > 0 {
		fmt.Fprintf(t, "Planes of tenants:\t%s\n", describeTenantPlanes(r.Status.TenantPlanes))
	}
	if len(r.LocalClusters) > 0 || r.LocalClustersProblem != "" {
		fmt.Fprintf(t, "Local clusters:\t%s\n", cmp.Or(r.LocalClustersProblem, localcluster.Describe(r.LocalClusters)))
	}
	if r.Running {
		fmt.Fprintf(t, "\nCOMPONENT\tSTATE\tSINCE\tMESSAGE\n")
		for _, c := range r.Status.Components {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, c.State, output.Age(now, c.Since), c.Message)
		}
	}
	return t.Flush()
}

// describeTenantPlanes counts those that are ready, and says what is wrong with the others.
func describeTenantPlanes(all []planestatus.TenantPlane) string {
	ready := 0
	var memory uint64
	var others []string
	for _, p := range all {
		memory += lifecycle.ReadMemory(p.PID).Anonymous
		if p.Ready {
			ready++
			continue
		}
		others = append(others, output.Sanitize(p.Tenant+": "+p.Message))
	}
	return output.JoinNonEmpty("; ", fmt.Sprintf("%d of %d ready, %d MB", ready, len(all), memory>>20), strings.Join(others, "; "))
}

// describeLogin says whose tokens are believed, and what is wrong if people may not be able to log in.
func describeLogin(l planestatus.Login) string {
	issuers := "nobody's tokens are believed"
	if len(l.Issuers) > 0 {
		issuers = "with tokens of " + strings.Join(l.Issuers, ", ")
	}
	switch {
	case l.Problem != "":
		return "PROBLEM: " + l.Problem
	case l.Pending:
		return issuers + ", as soon as the API server has taken " + l.File
	}
	return issuers
}

// describeBackups says how old the newest scheduled backup is, and what is wrong if the last one failed.
func describeBackups(b planestatus.Backup, now time.Time) string {
	last := "none yet"
	if b.Last != nil {
		last = fmt.Sprintf("the last one %s ago, %s", output.Age(now, b.Last.CreatedAt), b.Last.Path)
	}
	if b.Problem == "" {
		return fmt.Sprintf("%s; every %s, %d are kept", last, b.Every, b.Keep)
	}
	since := ""
	if b.FailingSince != nil {
		since = " since " + output.Age(now, *b.FailingSince)
	}
	return fmt.Sprintf("FAILING%s: %s; %s", since, b.Problem, last)
}
