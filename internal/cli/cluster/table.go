package cluster

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
)

// table prints clusters, one in a line. Lines that are printed later keep the columns of earlier ones.
type table struct {
	wide       bool
	namespaces bool
	widths     []int
}

// header has the same columns as row.
func (t *table) header() []string {
	h := []string{"NAME", "READY", "PHASE", "KUBERNETES", "PROVIDER", "RELEASE", "AGE"}
	if t.namespaces {
		h = append([]string{"NAMESPACE"}, h...)
	}
	if t.wide {
		h = append(h, "CONTROL-PLANE", "WORKERS", "ENDPOINT", "MESSAGE")
	}
	return h
}

// row has the condition message only in the wide table: it is a sentence, and would break lines.
func (t *table) row(c *v1alpha1.WorkloadCluster, now time.Time) []string {
	s := c.Status
	row := []string{
		c.Name, readyStatus(c.Status.Conditions), phaseOf(c),
		shortVersionChange(s.Versions.Kubernetes, s.Versions.WantedKubernetes), c.Spec.Provider,
		shortVersionChange(s.Versions.Release, s.Versions.WantedRelease), output.Age(now, c.CreationTimestamp.Time),
	}
	if t.namespaces {
		row = append([]string{c.Namespace}, row...)
	}
	if t.wide {
		row = append(row, formatCounts(s.ControlPlane), formatCounts(s.Workers), s.Endpoint, s.Message)
	}
	return row
}

// phaseOf says what the status does not know yet.
func phaseOf(c *v1alpha1.WorkloadCluster) string {
	if !c.DeletionTimestamp.IsZero() {
		return string(v1alpha1.PhaseDeleting)
	}
	return string(cmp.Or(c.Status.Phase, v1alpha1.PhasePending))
}

// readyStatus is Unknown until a controller has set the condition, as Kubernetes defines it.
func readyStatus(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}

// shortVersionChange shows what runs, and what is on its way.
func shortVersionChange(is, wanted string) string {
	switch {
	case is == "" || wanted == "" || is == wanted:
		return cmp.Or(is, wanted)
	}
	return is + "->" + wanted
}

// formatCounts are ready/desired.
func formatCounts(c v1alpha1.Counts) string {
	if c.Desired == nil && c.Ready == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", valueOrZero(c.Ready), valueOrZero(c.Desired))
}

// valueOrZero reads a count that is not reported yet as none.
func valueOrZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// reserveWidths sets the columns before it is known what comes.
func (t *table) reserveWidths() {
	usual := map[string]int{"NAMESPACE": 16, "NAME": 20, "PHASE": 9, "RELEASE": 24, "AGE": 6, "ENDPOINT": 24}
	for _, title := range t.header() {
		t.widths = append(t.widths, max(len(title), usual[title]))
	}
}

// print pads columns to the widest value of the first print.
func (t *table) print(w io.Writer, rows [][]string) error {
	if t.widths == nil {
		t.widths = make([]int, len(rows[0]))
		for _, row := range rows {
			for i, cell := range row {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(output.Sanitize(cell)))
			}
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			cell = cmp.Or(output.Sanitize(cell), "-")
			fmt.Fprintf(&b, "%s%s", cell, strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell))+3))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
