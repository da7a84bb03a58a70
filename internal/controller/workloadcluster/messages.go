package workloadcluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// conditionDetail is what Cluster API says of the Cluster in a condition that is not true, in words for customers.
func conditionDetail(c *clusterv1.Cluster, condition string) string {
	t := meta.FindStatusCondition(c.Status.Conditions, condition)
	if t == nil || t.Status == metav1.ConditionTrue {
		return ""
	}
	if text := summarizeMessage(t.Message); text != "" {
		return ": " + text
	}
	return ""
}

// summarizeMessage makes one clause of a message of Cluster API. Those are lists: of objects, and below each of its conditions
// that are not true. The first object that somebody can make sense of is enough; machines that are not there yet say
// of themselves that fields are missing, which helps nobody.
func summarizeMessage(message string) string {
	object := ""
	for _, line := range strings.Split(message, "\n") {
		trimmed := strings.TrimSpace(line)
		text, item := strings.CutPrefix(trimmed, "* ")
		nested := item && strings.HasPrefix(line, " ")
		switch {
		case trimmed == "":
		case !nested && strings.HasSuffix(text, ":"):
			object = strings.TrimPrefix(strings.TrimSuffix(text, ":"), "Machine ")
		case nested:
			if _, what, ok := strings.Cut(text, ": "); ok && isInformative(what) {
				return prefixWithObject(object, what)
			}
			if !strings.Contains(text, ": ") && isInformative(text) {
				return prefixWithObject(object, text)
			}
		case isInformative(text):
			return text
		}
	}
	return ""
}

// isInformative says that a text is for people.
func isInformative(text string) bool {
	for _, silent := range []string{"status.initialization.", "spec.providerID", "Waiting for Cluster", "Waiting for a Node", "Control plane not yet initialized", "Waiting for cluster topology"} {
		if strings.Contains(text, silent) {
			return false
		}
	}
	return text != ""
}

func prefixWithObject(object, text string) string {
	if object == "" {
		return text
	}
	return object + ": " + text
}
