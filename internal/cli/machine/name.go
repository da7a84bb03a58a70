package machine

import (
	"strings"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/suggest"
)

// find is the machine called [NAMESPACE/]NAME, where NAME may also be its node's.
func (all reports) find(g *connect.Globals, name string) (report, error) {
	for _, called := range []func(report) string{byName, byNode} {
		var found reports
		for _, m := range all {
			if own := called(m); name == own || name == m.Namespace+"/"+own {
				found = append(found, m)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return report{}, exit.Errorf(exit.Usage, "%d machines are called %s; say which: %s", len(found), name,
				output.JoinOr(found.qualifiedNames()))
		}
	}
	return report{}, all.notFoundError(g, name)
}

// byName and byNode are what a machine can be called.
func byName(m report) string { return m.Name }
func byNode(m report) string { return m.Node }

// notFoundError is one sentence that helps to find the name that was meant.
func (all reports) notFoundError(g *connect.Globals, name string) error {
	similar := all.similarNames(name)
	switch {
	case len(all) == 0:
		return exit.Errorf(exit.Usage, "there is no machine %q, and no other in %s", name, g.DataDir)
	case len(similar) > 0 && len(similar) <= suggest.Max:
		return exit.Errorf(exit.Usage, "there is no machine %q; did you mean %s?", name, output.JoinOr(similar))
	}
	return exit.Errorf(exit.Usage, "there is no machine %q; see them all with: %s", name, g.Hint("machine list"))
}

// similarNames are the names that name is a part of, or that differ from it in a few letters.
func (all reports) similarNames(name string) []string {
	own := name[strings.LastIndex(name, "/")+1:]
	var similar []string
	for i, shortest := range all.shortestNames() {
		if own != "" && strings.Contains(all[i].Name, own) || suggest.Distance(own, all[i].Name) <= 3 {
			similar = append(similar, shortest)
		}
	}
	return similar
}

// shortestNames are the shortest that find one machine each, in the order of the machines.
func (all reports) shortestNames() []string {
	count := map[string]int{}
	for _, m := range all {
		count[m.Name]++
	}
	names := all.qualifiedNames()
	for i, m := range all {
		if count[m.Name] == 1 {
			names[i] = m.Name
		}
	}
	return names
}

// qualifiedNames tell apart machines of the same name in several namespaces.
func (all reports) qualifiedNames() []string {
	var names []string
	for _, m := range all {
		names = append(names, m.Namespace+"/"+m.Name)
	}
	return names
}
