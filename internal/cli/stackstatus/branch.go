package stackstatus

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
)

// toBranch says what is newest of a stack that is ready, and what is wrong with any other.
func (s stackReport) toBranch(now time.Time) output.Branch {
	text := s.Message
	if s.State == readinessReady {
		text = "latest " + cmp.Or(s.LatestRelease, "release not known")
		if name, kubernetes, ok := strings.Cut(s.LatestRelease, " | "); ok {
			text = fmt.Sprintf("latest %s (%s)", name, kubernetes)
		}
	}
	line := fmt.Sprintf("%s/%s (%s %s %s, %s)", s.Namespace, s.Name, s.Provider, s.Stack, s.Kubernetes, s.Channel)
	return output.Branch{
		Name: line, State: string(s.State), Message: s.withNotes(text), Children: releaseBranches(s.Releases, false, now),
	}
}

// releaseBranches name namespaces where these are not that of the stack above.
func releaseBranches(all []releaseReport, qualified bool, now time.Time) (these []output.Branch) {
	for _, r := range all {
		b := output.Branch{Name: r.Name, State: string(r.State), Children: clusterBranches(r.Clusters, now)}
		if qualified {
			b.Name = r.Namespace + "/" + r.Name
		}
		switch {
		case r.State == readinessReady:
			b.Message = r.withNotes(output.JoinNonEmpty(", ", r.Kubernetes, cmp.Or(describeUsage(r.Clusters), "not used")))
		case r.Reason == csv1.ReasonInUse: // which says by whom
			b.Message = r.withNotes(r.Message)
		default:
			b.Message = r.withNotes(r.Message, describeUsage(r.Clusters))
		}
		these = append(these, b)
	}
	return these
}

// describeUsage is empty for a release that nobody uses.
func describeUsage(clusters []releaseClusterReport) string {
	switch n := len(clusters); n {
	case 0:
		return ""
	case 1:
		return "used by 1 cluster"
	default:
		return fmt.Sprintf("used by %d clusters", n)
	}
}

// clusterBranches has stages only where they tell why add-ons are not ready.
func clusterBranches(all []releaseClusterReport, now time.Time) (these []output.Branch) {
	for _, u := range all {
		b := output.Branch{Name: u.Namespace + "/" + u.Name, State: string(u.State)}
		switch u.State {
		case readinessReady:
			b.Message = u.withNotes(output.JoinNonEmpty(", ", u.Kubernetes, "add-ons ready"))
		case readinessDeleting:
			b.Message = u.Message
		default:
			b.Message = u.withNotes("add-ons: " + u.Message)
			b.Children = stageBranches(u.Stages, now)
		}
		these = append(these, b)
	}
	return these
}

// withNotes adds to texts what is worth knowing besides.
func (h health) withNotes(texts ...string) string {
	return output.JoinNonEmpty("; ", append(texts, h.Notes...)...)
}

// stageBranches says how long a stage has waited for its condition, as that may be for ever.
func stageBranches(all []csv1.StageStatus, now time.Time) (these []output.Branch) {
	for _, s := range all {
		phase := ""
		if s.Phase == csv1.StageWaitPre || s.Phase == csv1.StageWaitPost {
			phase = string(s.Phase)
			if s.Since != nil {
				phase += " for " + output.Age(now, s.Since.Time)
			}
		}
		these = append(these, output.Branch{
			Name: s.Name, State: stageState(s),
			Message: output.JoinNonEmpty(": ", output.JoinNonEmpty(", ", s.Action, phase), s.Message),
		})
	}
	return these
}

// stageState has the words of the other branches, and phases of a newer polderd as they are.
func stageState(s csv1.StageStatus) string {
	switch s.Phase {
	case csv1.StagePending, "":
		return "Pending"
	case csv1.StageWaitPre, csv1.StageWaitPost:
		return string(readinessWaiting)
	case csv1.StageDone:
		return "Done"
	case csv1.StageApplying:
		if s.Action == "delete" {
			return string(readinessDeleting)
		}
		return "Applying"
	}
	return string(s.Phase)
}
