package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cmdline"
	"github.com/polder-kaas/polder/internal/exit"
)

func clusterWait(g *globals) *cobra.Command {
	var want string
	w := waiting{wanted: true}
	c := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a cluster is ready, or deleted, and tell how far it is",
		Long: fmt.Sprintf(`wait tells, with a line for each change, how far a cluster is, until it is ready, or what --for says.
It exits with %d if that does not happen in time, and with %d if it will not happen until somebody acts.`, exit.Timeout, exit.Failure),
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: g.completeNames(1),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := readGoal(want)
			if err != nil {
				return err
			}
			a, err := g.connect(c)
			if err != nil {
				return err
			}
			return w.run(c, a, args[0], to, true)
		},
	}
	namespaceFlag(c)
	c.Flags().StringVar(&want, "for", "ready", "what to wait for: ready, deleted, `phase=PHASE` or condition=TYPE[=STATUS]")
	timeoutFlag(c, &w.timeout, waitFor, "how long to wait")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "deleted", "phase=", "condition="}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return c
}

// waitFor is longer than a good cluster takes anywhere.
const waitFor = 20 * time.Minute

// waiting is --wait and --timeout.
type waiting struct {
	wanted  bool
	timeout time.Duration
}

func (w *waiting) addTo(c *cobra.Command, text string) {
	c.Flags().BoolVar(&w.wanted, "wait", false, text+", and tell how far it is")
	timeoutFlag(c, &w.timeout, waitFor, "how long to wait")
}

// timeoutFlag refuses what is no time before anything is done.
func timeoutFlag(c *cobra.Command, d *time.Duration, usual time.Duration, text string) {
	*d = usual
	c.Flags().Var((*span)(d), "timeout", text)
}

// span is a duration that is longer than nothing.
type span time.Duration

// String, Set and Type make span a flag.
func (s *span) String() string { return time.Duration(*s).String() }

// Type names the flag's value in help texts.
func (s *span) Type() string { return "duration" }

// Set refuses what is no time to wait for.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("this is no time to wait for; write, for example, 90s or 20m")
	}
	*s = span(d)
	return nil
}

// run waits for one cluster. It tells on the output, or, where that is for a program, beside it.
func (w *waiting) run(c *cobra.Command, a *access, name string, to goal, onOutput bool) error {
	out := c.ErrOrStderr()
	if onOutput {
		out = c.OutOrStdout()
	}
	v := &vigil{name: name, goal: to, out: out, begin: time.Now(), hint: a.hint}
	err := v.wait(c.Context(), planeSource{a.clusters(), name}, a.namespace, w.timeout)
	if errors.Is(err, errNoCluster) {
		return a.missing(name)
	}
	if v.apiTrouble {
		return a.explain(fmt.Sprintf("waiting for cluster %q", name), err)
	}
	return err
}
