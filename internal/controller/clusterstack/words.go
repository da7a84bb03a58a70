package clusterstack

import (
	"fmt"
	"slices"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/controller/usage"
)

// few is how many of many a sentence names.
const few = 5

// notice remembers a line of releases that the source has besides.
func (l *look) notice(line string) {
	if len(l.others) < few && !slices.Contains(l.others, line) {
		l.others = append(l.others, line)
	}
}

// told says what the source has for a stack, and what it has that would be if it were sound.
func (l look) told(o *csv1.ClusterStack) string {
	text := fmt.Sprintf("%s has %s of %s in channel %s", l.where, count(len(l.entries), "release"), usage.LineOf(o), o.Spec.Channel)
	if n := len(l.leftOut); n > 0 {
		text += fmt.Sprintf("; left out, %d: %s", n, strings.Join(l.leftOut[:min(n, few)], "; "))
	}
	return text
}

// none says that the source has nothing for a stack, and what it has instead.
func (l look) none(o *csv1.ClusterStack) string {
	text := fmt.Sprintf("%s has no release of %s in channel %s", l.where, usage.LineOf(o), o.Spec.Channel)
	if len(l.leftOut) > 0 {
		return text + " that is sound: " + strings.Join(l.leftOut[:min(len(l.leftOut), few)], "; ")
	}
	if len(l.others) > 0 {
		text += ", but of " + strings.Join(slices.Sorted(slices.Values(l.others)), ", ")
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
