package clusterstack

import (
	"fmt"
	"slices"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
)

// maxNamed is how many items a message names.
const maxNamed = 5

// addOtherLine remembers another line of releases that the source has.
func (l *sourceState) addOtherLine(line string) {
	if len(l.otherLines) < maxNamed && !slices.Contains(l.otherLines, line) {
		l.otherLines = append(l.otherLines, line)
	}
}

// describeReleases says what the source has for a stack, and what was left out because it is invalid.
func (l sourceState) describeReleases(o *csv1.ClusterStack) string {
	text := fmt.Sprintf("%s has %s of %s in channel %s", l.location, pluralize(len(l.entries), "release"),
		lineage.LineOfStack(o), o.Spec.Channel)
	if n := len(l.rejected); n > 0 {
		text += fmt.Sprintf("; left out, %d: %s", n, strings.Join(l.rejected[:min(n, maxNamed)], "; "))
	}
	return text
}

// describeNoReleases says that the source has no release for a stack, and what it has instead.
func (l sourceState) describeNoReleases(o *csv1.ClusterStack) string {
	text := fmt.Sprintf("%s has no release of %s in channel %s", l.location, lineage.LineOfStack(o), o.Spec.Channel)
	if len(l.rejected) > 0 {
		return text + " that is sound: " + strings.Join(l.rejected[:min(len(l.rejected), maxNamed)], "; ")
	}
	if len(l.otherLines) > 0 {
		text += ", but of " + strings.Join(slices.Sorted(slices.Values(l.otherLines)), ", ")
	}
	return text
}

// pluralize returns a number with its noun.
func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
