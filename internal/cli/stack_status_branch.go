package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func (s stackReport) toBranch(now time.Time) branch {
	text := s.Message
	if s.State == readinessReady {
		text = "latest " + cmp.Or(s.LatestRelease, "release not known")
		if name, kubernetes, ok := strings.Cut(s.LatestRelease, " | "); ok {
			text = fmt.Sprintf("latest %s (%s)", name, kubernetes)
		}
	}
	line := fmt.Sprintf("%s/%s (%s %s %s, %s)", s.Namespace, s.Name, s.Provider, s.Stack, s.Kubernetes, s.Channel)
	return branch{name: line, state: string(s.State), message: s.withNotes(text), children: releaseBranches(s.Releases, false, now)}
}

// releaseBranches name namespaces where these are not that of the stack above.
func releaseBranches(all []releaseReport, qualified bool, now time.Time) (these []branch) {
	for _, r := range all {
		b := branch{name: r.Name, state: string(r.State), children: clusterBranches(r.Clusters, now)}
		if qualified {
			b.name = r.Namespace + "/" + r.Name
		}
		switch {
		case r.State == readinessReady:
			b.message = r.withNotes(joinNonEmpty(", ", r.Kubernetes, cmp.Or(describeUsage(r.Clusters), "not used")))
		case r.Reason == csv1.ReasonInUse: // which says by whom
			b.message = r.withNotes(r.Message)
		default:
			b.message = r.withNotes(r.Message, describeUsage(r.Clusters))
		}
		these = append(these, b)
	}
	return these
}

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

func clusterBranches(all []releaseClusterReport, now time.Time) (these []branch) {
	for _, u := range all {
		b := branch{name: u.Namespace + "/" + u.Name, state: string(u.State)}
		switch u.State {
		case readinessReady:
			b.message = u.withNotes(joinNonEmpty(", ", u.Kubernetes, "add-ons ready"))
		case readinessDeleting:
			b.message = u.Message
		default:
			b.message = u.withNotes("add-ons: " + u.Message)
			b.children = stageBranches(u.Stages, now)
		}
		these = append(these, b)
	}
	return these
}

// withNotes adds to texts what is worth knowing besides.
func (h health) withNotes(texts ...string) string {
	return joinNonEmpty("; ", append(texts, h.Notes...)...)
}

// joinNonEmpty leaves out what is empty.
func joinNonEmpty(by string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), by)
}

func stageBranches(all []csv1.StageStatus, now time.Time) (these []branch) {
	for _, s := range all {
		phase := ""
		if s.Phase == csv1.StageWaitPre || s.Phase == csv1.StageWaitPost {
			phase = string(s.Phase)
			if s.Since != nil {
				phase += " for " + formatAge(now, s.Since.Time)
			}
		}
		these = append(these, branch{name: s.Name, state: stageState(s), message: joinNonEmpty(": ", joinNonEmpty(", ", s.Action, phase), s.Message)})
	}
	return these
}

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
