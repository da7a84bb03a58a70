package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// newWaitCommand is polder wait.
func newWaitCommand(g *connect.Globals) *cobra.Command {
	var want string
	w := waitOptions{enabled: true}
	c := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a cluster is ready, or deleted, and tell how far it is",
		Long: fmt.Sprintf(`wait tells, with a line for each change, how far a cluster is, until it is ready, or what --for says.
It exits with %d if that does not happen in time, and with %d if it will not happen until somebody acts.`,
			exit.Timeout, exit.Failure),
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := parseGoal(want)
			if err != nil {
				return err
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			return w.run(c, a, args[0], to, true)
		},
	}
	addNamespaceFlag(c)
	c.Flags().StringVar(&want, "for", "ready",
		"what to wait for: ready, deleted, `phase=PHASE` or condition=TYPE[=STATUS]")
	addTimeoutFlag(c, &w.timeout, defaultWaitTimeout, "how long to wait")
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("for",
		cobra.FixedCompletions([]string{"ready", "deleted", "phase=", "condition="}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// defaultWaitTimeout is longer than a good cluster takes anywhere.
const defaultWaitTimeout = 20 * time.Minute

// waitOptions is --wait and --timeout.
type waitOptions struct {
	enabled bool
	timeout time.Duration
	named   bool // each line has the name of its cluster
}

// addFlags is for commands that change a cluster, which wait only on request.
func (w *waitOptions) addFlags(c *cobra.Command, text string) {
	c.Flags().BoolVar(&w.enabled, "wait", false, text+", and tell how far it is")
	addTimeoutFlag(c, &w.timeout, defaultWaitTimeout, "how long to wait")
}

// addTimeoutFlag refuses what is no time before anything is done.
func addTimeoutFlag(c *cobra.Command, d *time.Duration, usual time.Duration, text string) {
	*d = usual
	c.Flags().Var((*positiveDuration)(d), "timeout", text)
}

// positiveDuration is a duration that is longer than nothing.
type positiveDuration time.Duration

// String, Set and Type make positiveDuration a flag.
func (s *positiveDuration) String() string { return time.Duration(*s).String() }

// Type names the flag's value in help texts.
func (s *positiveDuration) Type() string { return "duration" }

// Set refuses what is no time to wait for.
func (s *positiveDuration) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("this is no time to wait for; write, for example, 90s or 20m")
	}
	*s = positiveDuration(d)
	return nil
}

// run waits for one cluster. It tells on the output, or, where that is for a program, beside it.
func (w *waitOptions) run(c *cobra.Command, a *connect.Access, name string, to goal, onOutput bool) error {
	out := c.ErrOrStderr()
	if onOutput {
		out = c.OutOrStdout()
	}
	v := &waitLoop{name: name, goal: to, out: out, now: a.Globals.Now, begin: a.Globals.Now(), hint: a.Hint}
	if w.named {
		v.prefix = name + "  "
	}
	err := v.wait(c.Context(), follow.PlaneSource{Objects: clusterClient(a), Name: name}, a.Namespace, w.timeout)
	if errors.Is(err, errNoCluster) {
		return notFoundError(a, name)
	}
	if v.apiFailed {
		return a.Explain(fmt.Sprintf("waiting for cluster %q", name), err)
	}
	return err
}
