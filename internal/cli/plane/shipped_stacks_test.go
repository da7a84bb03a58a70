package plane

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases/shipped"
)

// Each shipped stack is told of once, when it is ready, and waited for until then; those of others are nobody's business here.
func TestPrintReadyStacks(t *testing.T) {
	of := func(name, directory string, ready metav1.ConditionStatus) csv1.ClusterStack {
		s := csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec.Source = &csv1.Source{Directory: directory}
		s.Status.Conditions = []metav1.Condition{{Type: csv1.ConditionReady, Status: ready}}
		return s
	}
	all := []csv1.ClusterStack{
		of("done", shipped.Directory, metav1.ConditionTrue), of("broken", shipped.Directory, metav1.ConditionFalse),
		of("theirs", "other", metav1.ConditionFalse), {ObjectMeta: metav1.ObjectMeta{Name: "bare"}},
	}
	told := map[string]bool{}
	for i, want := range []string{"done", ""} {
		var out strings.Builder
		missing := printReadyStacks(&out, all, told, func() time.Duration { return 0 })
		if len(missing) != 1 || missing[0].Name != "broken" {
			t.Errorf("waits for %v", missing)
		}
		if got := out.String(); (got == "") != (want == "") || !strings.Contains(got, want) || strings.Count(got, "\n") > 1 {
			t.Errorf("look %d says %q", i, got)
		}
	}
}
