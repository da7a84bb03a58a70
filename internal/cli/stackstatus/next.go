package stackstatus

import (
	"cmp"
	"fmt"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/suggest"
)

// Who must act.
const (
	actorOperator = "platform operator"
	actorAuthor   = "stack author"
	actorCustomer = "customer"
)

// advice is what to do about a reason. Words in braces are filled in for the object.
type advice struct {
	failed bool // it does not get better by itself
	who    string
	action string
}

// adviceByReason are for the reasons about which somebody can do something. The others pass by themselves, or
// have their cause in another object, which says so.
var adviceByReason = map[string]advice{
	csv1.ReasonSourceMissing:     {true, actorOperator, "name a source in spec.source, or start polderd with --stack-source"},
	csv1.ReasonSourceInvalid:     {true, actorOperator, "correct spec.source, or the Secret that it names; without spec.source, polderd's --stack-source, --stack-docker-config or --stack-source-ca"},
	csv1.ReasonSourceUnreachable: {true, actorOperator, "check address and credentials in spec.source or, without it, of polderd's --stack-source; it is tried again by itself"},
	csv1.ReasonNoRelease:         {true, actorAuthor, "publish a release of {line} with polder stack publish; polder stack list shows what the source has"},

	csv1.ReasonNotOurs: {true, actorOperator, "delete one of the two ClusterStacks, or have them in two namespaces"},

	csv1.ReasonNameInvalid:   {true, actorOperator, "releases have names such as local-scs-1-36-v3; remove this one with: {kubectl} delete {object}"},
	csv1.ReasonNotFound:      {true, actorAuthor, "publish it again, or take its version out of spec.versions of {stack}"},
	csv1.ReasonDigestChanged: {true, actorAuthor, "somebody has published other content under this name; publish that as a new version"},
	csv1.ReasonInvalid:       {true, actorAuthor, "correct the stack, which polder stack lint checks, and publish a new version"},
	csv1.ReasonRefused:       {true, actorAuthor + " or " + actorOperator, "remove the object from the stack and publish a new version, or allow its kind with polderd's --stack-kinds"},
	csv1.ReasonApplyFailed:   {true, actorOperator, "see the errors of its objects with: {kubectl} get {object} -o yaml; it is tried again by itself"},
	csv1.ReasonClassNotReady: {false, actorOperator, "see what Cluster API says of its class with: {kubectl} describe clusterclass -n {namespace} {class}"},
	csv1.ReasonInUse:         {false, actorCustomer, "delete the clusters that use it, or move them to another release: {clusters}"},

	csv1.ReasonNotAllowed:       {true, actorOperator, "add spec.allowedNamespaces to {stack}, so that it selects namespace {namespace}"},
	csv1.ReasonNotFromRelease:   {true, actorCustomer, "change spec.topology.classRef to the class of a release with: {kubectl} edit cluster -n {namespace} {name}"},
	csv1.ReasonNotInitialized:   {false, actorCustomer, "see how far its control plane is with: {kubectl} describe cluster -n {namespace} {name}"},
	csv1.ReasonUnreachable:      {false, actorOperator, "see how its machines are with: {kubectl} get machines -n {namespace} -l cluster.x-k8s.io/cluster-name={name}; it is tried again by itself"},
	csv1.ReasonStageWaiting:     {false, actorCustomer, "wait; if it takes long, see in the cluster what stage {stage} waits for with: " + inspectClusterCommand},
	csv1.ReasonStageTimedOut:    {false, actorCustomer, "see in the cluster why stage {stage} still waits with: " + inspectClusterCommand},
	csv1.ReasonConditionInvalid: {true, actorAuthor + ", then " + actorCustomer, "correct the condition of stage {stage}, publish a new version, and change the cluster's class to it"},
	csv1.ReasonNotHealthy:       {false, actorCustomer, "see in the cluster what is wrong with: " + inspectClusterCommand},
}

// clusterAdviceByReason is other advice for the same reasons, where it is about add-ons.
var clusterAdviceByReason = map[string]advice{
	csv1.ReasonInvalid: {true, actorAuthor + ", then " + actorCustomer, "correct the stack, publish a new version, and change the cluster's class to it"},
	csv1.ReasonRefused: {true, actorAuthor + ", then " + actorCustomer, "do what the message says, or remove the object from the stack, publish a new version, and change the cluster's class to it"},
}

// inspectClusterCommand are commands that look into a cluster.
const inspectClusterCommand = "{kubectl} get secret -n {namespace} {name}-kubeconfig -o 'jsonpath={.data.value}' | base64 -d >{name}.kubeconfig; kubectl --kubeconfig {name}.kubeconfig get pods,events -A"

// nextStep is what somebody should do about an object.
type nextStep struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Who       string `json:"who"`
	Action    string `json:"action"`
}

// adviceTarget is an object that advice is for, with what fills the words in braces.
type adviceTarget struct {
	kind, namespace, name string
	object                string             // that has the conditions, as kubectl wants it
	class, stage          string             // its class, and the stage it is at
	stack                 *csv1.ClusterStack // may be nil
	clusters              []releaseClusterReport
}

// nextStepFor is what to do about an object. What is wrong with a source is to be done to the stack.
func (s adviceTarget) nextStepFor(reason, kubectl string) nextStep {
	of, line := "the ClusterStack of its release, which there is not yet", ""
	if s.stack != nil {
		of, line = "ClusterStack "+s.stack.Namespace+"/"+s.stack.Name, describeLine(s.stack)
	}
	fill := strings.NewReplacer("{kubectl}", kubectl, "{namespace}", s.namespace, "{name}", s.name, "{object}", s.object, "{class}", s.class,
		"{stage}", s.stage, "{stack}", of, "{line}", line, "{clusters}", cmp.Or(joinClusterNames(s.clusters), "its conditions name them"))
	a, ok := clusterAdviceByReason[reason]
	if !ok || s.kind != "Cluster" {
		a = adviceByReason[reason]
	}
	n := nextStep{Kind: s.kind, Namespace: s.namespace, Name: s.name, Reason: reason, Who: a.who, Action: fill.Replace(a.action)}
	switch reason {
	case csv1.ReasonSourceMissing, csv1.ReasonSourceInvalid, csv1.ReasonSourceUnreachable:
		if s.stack != nil {
			n.Kind, n.Namespace, n.Name = "ClusterStack", s.stack.Namespace, s.stack.Name
		}
	}
	return n
}

func describeLine(s *csv1.ClusterStack) string {
	return fmt.Sprintf("%s %s for Kubernetes %s in channel %s", s.Spec.Provider, s.Spec.Name, s.Spec.KubernetesVersion, cmp.Or(s.Spec.Channel, csv1.ChannelStable))
}

// joinClusterNames lists clusters for a sentence.
func joinClusterNames(clusters []releaseClusterReport) string {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	if more := len(names) - suggest.Max; more > 0 {
		names = append(names[:suggest.Max], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// nextStepLines are what the command says below its table.
func nextStepLines(all []nextStep) []string {
	if len(all) == 0 {
		return nil
	}
	lines := []string{"", "Next:"}
	for _, n := range all {
		lines = append(lines, output.Sanitize(fmt.Sprintf("- %s %s/%s: %s (%s)", n.Kind, n.Namespace, n.Name, n.Action, n.Who)))
	}
	return lines
}
