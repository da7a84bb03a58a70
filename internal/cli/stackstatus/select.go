package stackstatus

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// selection says which ClusterStacks are meant.
type selection struct {
	Namespace string
	Name      string // empty: all
	All       bool   // in all namespaces
}

// parseArgs reads the argument of the command: [NAMESPACE/]NAME, or nothing. A kind before the name is not taken
// for a namespace.
func (s *selection) parseArgs(args []string) error {
	if s.All && s.Namespace != "" {
		return exit.Errorf(exit.Usage, "--namespace and --all-namespaces contradict each other; give one of them")
	}
	if len(args) == 0 {
		return nil
	}
	namespace, name, qualified := strings.Cut(args[0], "/")
	if slices.Contains([]string{"csk", "clusterstack", "clusterstacks"}, namespace) && qualified &&
		!strings.Contains(name, "/") {
		namespace, qualified = s.Namespace, false // as kubectl calls it
		args = []string{name}
	}
	if !qualified {
		namespace, name = s.Namespace, args[0]
	}
	switch {
	case name == "" || strings.Contains(name, "/") || qualified && namespace == "":
		return exit.Errorf(exit.Usage, "%q is no name of a ClusterStack; say NAME or NAMESPACE/NAME", args[0])
	case qualified && (s.All || s.Namespace != "" && s.Namespace != namespace):
		return exit.Errorf(exit.Usage, "%q names a namespace already; leave out --namespace and --all-namespaces", args[0])
	}
	s.Namespace, s.Name = namespace, name
	return nil
}

// setDefaultNamespace puts in the namespace that is meant where none is named.
func (s *selection) setDefaultNamespace(usual string) {
	if !s.All && s.Namespace == "" {
		s.Namespace = usual
	}
}

// hasNamespace says whether objects of a namespace are meant.
func (s selection) hasNamespace(namespace string) bool { return s.All || s.Namespace == namespace }

// describeNamespace completes the sentence that nothing was found.
func (s selection) describeNamespace() string {
	if s.All {
		return "any namespace"
	}
	return "namespace " + s.Namespace
}

// completeStacks completes the names of ClusterStacks, with NAMESPACE/ where that was typed.
func completeStacks(g *connect.Globals, s *selection) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		p, err := newPlaneReader(g)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		w, err := p.readObjects(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		in := *s
		in.setDefaultNamespace(p.namespace)
		var choices []cobra.Completion
		for _, k := range w.sortedStacks() {
			switch {
			case strings.Contains(typed, "/"):
				choices = append(choices, k.Namespace+"/"+k.Name)
			case in.hasNamespace(k.Namespace):
				choices = append(choices, k.Name)
			}
		}
		return choices, cobra.ShellCompDirectiveNoFileComp
	}
}
