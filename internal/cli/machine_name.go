package cli

import (
	"slices"
	"strings"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxSuggestions is how many names a sentence suggests.
const maxSuggestions = 5

// find is the machine called [NAMESPACE/]NAME, where NAME may also be its node's.
func (all machineReports) find(g *globals, name string) (machineReport, error) {
	for _, called := range []func(machineReport) string{byName, byNode} {
		var found machineReports
		for _, m := range all {
			if own := called(m); name == own || name == m.Namespace+"/"+own {
				found = append(found, m)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return machineReport{}, exit.Errorf(exit.Usage, "%d machines are called %s; say which: %s", len(found), name, joinOr(found.qualifiedNames()))
		}
	}
	return machineReport{}, all.notFoundError(g, name)
}

func byName(m machineReport) string { return m.Name }
func byNode(m machineReport) string { return m.Node }

// notFoundError is one sentence that helps to find the name that was meant.
func (all machineReports) notFoundError(g *globals, name string) error {
	similar := all.similarNames(name)
	switch {
	case len(all) == 0:
		return exit.Errorf(exit.Usage, "there is no machine %q, and no other in %s", name, g.dataDir)
	case len(similar) > 0 && len(similar) <= maxSuggestions:
		return exit.Errorf(exit.Usage, "there is no machine %q; did you mean %s?", name, joinOr(similar))
	}
	return exit.Errorf(exit.Usage, "there is no machine %q; see them all with: %s", name, g.hint("machine list"))
}

// similarNames are the names that name is a part of, or that differ from it in a few letters.
func (all machineReports) similarNames(name string) []string {
	own := name[strings.LastIndex(name, "/")+1:]
	var similar []string
	for i, shortest := range all.shortestNames() {
		if own != "" && strings.Contains(all[i].Name, own) || editDistance(own, all[i].Name) <= 3 {
			similar = append(similar, shortest)
		}
	}
	return similar
}

// shortestNames are the shortest that find one machine each, in the order of the machines.
func (all machineReports) shortestNames() []string {
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

func (all machineReports) qualifiedNames() []string {
	var names []string
	for _, m := range all {
		names = append(names, m.Namespace+"/"+m.Name)
	}
	return names
}

// joinOr lists choices as people do: "a, b or c".
func joinOr(choices []string) string {
	last := len(choices) - 1
	if last < 1 {
		return strings.Join(choices, "")
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// editDistance is how many bytes must be added, dropped or changed to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := []int{i + 1}
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next = append(next, slices.Min([]int{change, row[j+1] + 1, next[j] + 1}))
		}
		row = next
	}
	return row[len(b)]
}
