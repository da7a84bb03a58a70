package machine

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/localcluster"
)

// completeNames completes the names of machines to which fits says yes.
func completeNames(g *connect.Globals, fits func(report) bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := readMachines(c.Context(), g)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := all.shortestNames()
		if strings.Contains(typed, "/") {
			names = all.qualifiedNames()
		}
		var choices []cobra.Completion
		for i, name := range names {
			if fits(all[i]) {
				choices = append(choices, cobra.CompletionWithDesc(name, all[i].role()+", "+all[i].stateText()))
			}
		}
		return choices, cobra.ShellCompDirectiveNoFileComp
	}
}

// anyMachine is for commands that work on all.
func anyMachine(report) bool { return true }

// completeProcesses completes a machine and then one of its logs.
func completeProcesses(g *connect.Globals) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return completeNames(g, anyMachine)(c, args, typed)
		}
		all, err := readMachines(c.Context(), g)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		m, err := all.find(g, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return m.logNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeLocalClusters completes with NAME where that is enough, with NAMESPACE/NAME elsewhere.
func completeLocalClusters(g *connect.Globals) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, err := localcluster.Read(c.Context(), g)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		count := map[string]int{}
		for _, l := range all {
			count[l.Status.Cluster.Name]++
		}
		var choices []cobra.Completion
		for _, l := range all {
			name := l.Status.Cluster.Name
			if count[name] > 1 || strings.Contains(typed, "/") {
				name = localcluster.QualifiedName(l)
			}
			choices = append(choices, name)
		}
		return choices, cobra.ShellCompDirectiveNoFileComp
	}
}
