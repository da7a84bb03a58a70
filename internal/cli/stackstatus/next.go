package stackstatus

import (
	"cmp"
	"fmt"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/lineage/advice"
)

// nextStep is what somebody should do about an object.
type nextStep struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Who       string `json:"who"`
	Action    string `json:"action"`
}

// actorNames are actors as people call them.
var actorNames = map[csv1.Actor]string{
	csv1.Customer: "customer", csv1.PlatformOperator: "platform operator", csv1.StackAuthor: "stack author",
}

// newNextStep is what the status of an object says is to be done about it; kubectl is how that is called here.
func newNextStep(about advice.Object, reason string, actor csv1.Actor, action, kubectl string) nextStep {
	n := nextStep{
		Kind: about.Kind, Namespace: about.Meta.Namespace, Name: about.Meta.Name, Reason: reason,
		Who: cmp.Or(actorNames[actor], string(actor)), Action: withKubectl(action, kubectl),
	}
	if about.Kind == "ClusterAddon" {
		n.Kind, n.Name = "Cluster", about.Cluster // people know their clusters, not the add-ons of them
	}
	return n
}

// withKubectl calls kubectl as it is called here, where it is for the plane: what is for a workload cluster names its
// own kubeconfig.
func withKubectl(action, kubectl string) string {
	parts := strings.Split(action, "kubectl ")
	for i := range parts[1:] {
		if call := "kubectl "; strings.HasPrefix(parts[i+1], "--kubeconfig ") {
			parts[i+1] = call + parts[i+1]
		} else {
			parts[i+1] = kubectl + " " + parts[i+1]
		}
	}
	return strings.Join(parts, "")
}

// nextStepLines are what the command says below its table.
func nextStepLines(all []nextStep) []string {
	if len(all) == 0 {
		return nil
	}
	lines := []string{"", "Next:"}
	for _, n := range all {
		lines = append(lines, output.Sanitize(fmt.Sprintf("- %s %s/%s: %s (%s)", n.Kind, n.Namespace, n.Name, n.Action,
			n.Who)))
	}
	return lines
}
