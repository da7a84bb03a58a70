package cluster

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// newDescribeCommand is polder describe.
func newDescribeCommand(g *connect.Globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "describe NAME",
		Short: "Say how a cluster is, why, and who must do what",
		Long: fmt.Sprintf(`describe says first what is wrong and who must act, then what versions run and which are possible, and then shows
the machines, add-ons and conditions of a cluster.
It exits with 0 if the cluster is ready and with %d if it is not.`, exit.NotReady),
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			cluster, err := getCluster(c.Context(), a, args[0])
			if err != nil {
				return err
			}
			d := description{cluster: cluster, hint: a.Hint, now: a.Globals.Now()}
			if d.machines, d.noMachinesReason, err = listMachines(c.Context(), a, cluster.Name); err != nil {
				return err
			}
			if err := d.print(c.OutOrStdout()); err != nil {
				return err
			}
			if !readyGoal.isReached(cluster) {
				return exit.With(exit.NotReady, output.ErrSilent)
			}
			return nil
		},
	}
	addNamespaceFlag(c)
	return c
}

// description is all there is to say about a cluster.
type description struct {
	cluster          *v1alpha1.WorkloadCluster
	machines         []clusterv1.Machine
	noMachinesReason string // why there are no machines
	hint             func(command string) string
	now              time.Time
}

// print writes without trailing spaces, which tabwriter leaves where a cell is empty and which would show in a
// paste.
func (d *description) print(w io.Writer) error {
	var b bytes.Buffer
	d.printSummary(&b)
	b.WriteByte('\n')
	d.printFacts(&b)
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "PART\tSTATE\tMESSAGE")
	d.buildTree().Draw(t, "", "")
	_ = t.Flush() // a buffer takes everything
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printSummary is what people read first: what is, who must act, and how.
func (d *description) printSummary(w io.Writer) {
	c, s := d.cluster, d.cluster.Status
	fmt.Fprintf(w, "Cluster %s/%s: %s\n", c.Namespace, c.Name,
		output.JoinNonEmpty(": ", phaseOf(c), output.Sanitize(s.Message)))
	switch who := describeActor(s); {
	case s.ObservedGeneration != c.Generation:
		fmt.Fprintln(w, "The plane has not looked at the last change yet.")
	case who != "":
		fmt.Fprintln(w, strings.ToUpper(who[:1])+who[1:])
	case readyGoal.isReached(c):
	default:
		fmt.Fprintf(w, "Nobody must act. Wait for it with: %s\n", d.hint("wait "+c.Name))
	}
}

// printFacts leaves out what is not known: an empty line would look like a fact.
func (d *description) printFacts(w io.Writer) {
	c, v := d.cluster, d.cluster.Status.Versions
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say := func(title, text string) {
		if text != "" {
			fmt.Fprintf(t, "%s:\t%s\n", title, output.Sanitize(text))
		}
	}
	say("Provider", c.Spec.Provider)
	kubernetes := describeVersionChange(v.Kubernetes, v.WantedKubernetes, c.Status.Phase)
	if v.Workers != "" && v.Workers != v.Kubernetes {
		kubernetes += "; workers run " + v.Workers
	}
	say("Kubernetes", kubernetes)
	say("Release", describeVersionChange(v.Release, v.WantedRelease, c.Status.Phase))
	say("Endpoint", c.Status.Endpoint)
	say("Age", output.Age(d.now, c.CreationTimestamp.Time))
	var updates []string
	for _, u := range c.Status.Updates {
		updates = append(updates, describeUpdate(u))
	}
	if len(updates) > 0 {
		say("Updates", strings.Join(updates, ", ")+"; see: "+d.hint("upgrade "+c.Name))
	}
	say("Undo", c.Status.Undo)
	_ = t.Flush() // errors come with the whole text
}

// describeVersionChange tells status from spec: what runs, and what it is to become.
func describeVersionChange(is, wanted string, phase v1alpha1.Phase) string {
	switch {
	case is == "" && wanted == "":
		return "not known yet"
	case is == "" && phase == v1alpha1.PhaseStalled:
		return wanted + " is to be installed"
	case is == "":
		return wanted + " is being installed"
	case wanted == "" || wanted == is:
		return is
	}
	return is + ", on its way to " + wanted
}

// describeUpdate names an update as the flags of polder upgrade do.
func describeUpdate(u v1alpha1.Update) string {
	return output.JoinNonEmpty(" ", u.KubernetesVersion, u.Version, parenthesize(u.Kubernetes))
}

// parenthesize leaves nothing behind where there is nothing to say.
func parenthesize(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
