package stackstatus

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/polder-kaas/polder/internal/cli/output"
)

// treeLines is the report as lines for people.
func treeLines(r report, now time.Time) []string {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE/STACK\tSTATE\tMESSAGE")
	for _, s := range r.Stacks {
		s.toBranch(now).Draw(t, "", "")
	}
	if len(r.Releases) > 0 {
		output.Branch{Name: "releases without ClusterStack", Children: releaseBranches(r.Releases, true, now)}.Draw(t, "", "")
	}
	if len(r.Clusters) > 0 {
		output.Branch{Name: "clusters without release", Children: clusterBranches(r.Clusters, now)}.Draw(t, "", "")
	}
	_ = t.Flush() // a buffer takes everything
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
