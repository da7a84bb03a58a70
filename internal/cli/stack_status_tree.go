package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// branch is one line of the tree, with those below it.
type branch struct {
	name, state, message string
	children             []branch
}

// treeLines is the report as lines for people.
func treeLines(r stacksReport, now time.Time) []string {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE/STACK\tSTATE\tMESSAGE")
	for _, s := range r.Stacks {
		s.toBranch(now).draw(t, "", "")
	}
	if len(r.Releases) > 0 {
		branch{name: "releases without ClusterStack", children: releaseBranches(r.Releases, true, now)}.draw(t, "", "")
	}
	if len(r.Clusters) > 0 {
		branch{name: "clusters without release", children: clusterBranches(r.Clusters, now)}.draw(t, "", "")
	}
	_ = t.Flush() // a buffer takes everything
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// draw writes the branch behind first, and those below it behind rest.
func (b branch) draw(w io.Writer, first, rest string) {
	fmt.Fprintf(w, "%s%s\t%s\t%s\n", first, sanitize(b.name), sanitize(b.state), sanitize(b.message))
	for i, c := range b.children {
		if i == len(b.children)-1 {
			c.draw(w, rest+"└─ ", rest+"   ")
		} else {
			c.draw(w, rest+"├─ ", rest+"│  ")
		}
	}
}

// sanitize makes one line of a text from anywhere that does nothing to a terminal.
func sanitize(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
}
