package workloadcluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// conditionDetail returns the message of the first condition of the Cluster that is not true and says something, in
// words for customers.
func conditionDetail(c *clusterv1.Cluster, conditions ...string) string {
	for _, condition := range conditions {
		t := meta.FindStatusCondition(c.Status.Conditions, condition)
		if t == nil || t.Status == metav1.ConditionTrue {
			continue
		}
		if text := summarizeMessage(t.Message); text != "" {
			return ": " + text
		}
	}
	return ""
}

// summarizeMessage makes one clause of a message of Cluster API. Those are lists: of objects, and below each its
// conditions that are not true, which may be lists again. The first object that somebody can make sense of is enough;
// machines that are not there yet only report that fields are missing, which helps nobody.
func summarizeMessage(message string) string {
	object := ""
	for _, line := range strings.Split(message, "\n") {
		trimmed := strings.TrimSpace(line)
		text, item := strings.CutPrefix(trimmed, "* ")
		nested := item && strings.HasPrefix(line, " ")
		heading, isHeading := strings.CutSuffix(text, ":")
		switch {
		case trimmed == "":
		case isHeading && !nested:
			object = strings.TrimPrefix(heading, "Machine ")
		case isHeading: // what it says is in the lines below it
		case nested:
			if _, what, ok := strings.Cut(text, ": "); ok {
				text = what
			}
			if isInformative(text) {
				return prefixWithObject(object, text)
			}
		case isInformative(text):
			return text
		}
	}
	return ""
}

// isInformative reports whether a text is worth showing to people.
func isInformative(text string) bool {
	for _, silent := range []string{"status.initialization.", "spec.providerID", "Waiting for Cluster",
		"Waiting for a Node", "Control plane not yet initialized", "Waiting for cluster topology"} {
		if strings.Contains(text, silent) {
			return false
		}
	}
	return text != ""
}

// prefixWithObject puts the name of an object before a text about it.
func prefixWithObject(object, text string) string {
	if object == "" {
		return text
	}
	return object + ": " + text
}
