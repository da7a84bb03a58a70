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
	below                []branch
}

// tree is the report as lines for people.
func tree(r stacksReport, now time.Time) []string {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE/STACK\tSTATE\tMESSAGE")
	for _, s := range r.Stacks {
		s.branch(now).draw(t, "", "")
	}
	if len(r.Releases) > 0 {
		branch{name: "releases without ClusterStack", below: releaseBranches(r.Releases, true, now)}.draw(t, "", "")
	}
	if len(r.Clusters) > 0 {
		branch{name: "clusters without release", below: userBranches(r.Clusters, now)}.draw(t, "", "")
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
	fmt.Fprintf(w, "%s%s\t%s\t%s\n", first, printable(b.name), printable(b.state), printable(b.message))
	for i, c := range b.below {
		if i == len(b.below)-1 {
			c.draw(w, rest+"└─ ", rest+"   ")
		} else {
			c.draw(w, rest+"├─ ", rest+"│  ")
		}
	}
}

// printable makes one line of a text from anywhere that does nothing to a terminal.
func printable(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
}
