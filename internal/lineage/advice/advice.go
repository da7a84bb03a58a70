// Package advice says who must act on a ClusterStack, a ClusterStackRelease or a ClusterAddon, and what to do next. It
// is the one place that does: controllers write it into status, and everybody else, command line, kubectl or REST,
// shows it.
package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/text"
)

// entry is what to do about a reason. Words in braces are filled in for the object.
type entry struct {
	failed bool // it does not get better by itself
	actor  csv1.Actor
	action string
}

// byReason has the reasons about which somebody can do something. The others pass by themselves, or have their cause in
// another object, which says so.
var byReason = map[string]entry{
	csv1.ReasonSourceMissing: {true, csv1.PlatformOperator,
		"name a source in spec.source, or start polderd with --stack-source"},
	csv1.ReasonSourceInvalid: {true, csv1.PlatformOperator,
		"correct spec.source, or the Secret that it names; without spec.source, polderd's --stack-source, --stack-docker-config or --stack-source-ca"},
	csv1.ReasonSourceUnreachable: {true, csv1.PlatformOperator,
		"check address and credentials in spec.source or, without it, of polderd's --stack-source; it is tried again by itself"},
	csv1.ReasonNoRelease: {true, csv1.StackAuthor,
		"publish a release of {line} with polder stack publish; polder stack list shows what the source has"},

	csv1.ReasonNotOurs: {true, csv1.PlatformOperator,
		"delete one of the two ClusterStacks, or have them in two namespaces"},

	csv1.ReasonNameInvalid: {true, csv1.PlatformOperator,
		"releases have names such as local-scs-1-36-v3; remove this one with: kubectl delete {object}"},
	csv1.ReasonNotFound: {true, csv1.StackAuthor,
		"publish it again, or take its version out of spec.versions of {stack}"},
	csv1.ReasonDigestChanged: {true, csv1.StackAuthor,
		"somebody has published other content under this name; publish that as a new version"},
	csv1.ReasonInvalid: {true, csv1.StackAuthor,
		"correct the stack, which polder stack lint checks, and publish a new version"},
	csv1.ReasonRefused: {true, csv1.StackAuthor,
		"remove the object from the stack and publish a new version, or allow its kind with polderd's --stack-kinds"},
	csv1.ReasonApplyFailed: {true, csv1.PlatformOperator,
		"see the errors of its objects with: kubectl get {object} -o yaml; it is tried again by itself"},
	csv1.ReasonClassNotReady: {false, csv1.PlatformOperator,
		"see what Cluster API says of its class with: kubectl describe clusterclass -n {namespace} {class}"},
	csv1.ReasonInUse: {false, csv1.Customer,
		"delete the clusters that use it, or move them to another release: {clusters}"},

	csv1.ReasonNotAllowed: {true, csv1.PlatformOperator,
		"add spec.allowedNamespaces to {stack}, so that it selects namespace {namespace}"},
	csv1.ReasonNotFromRelease: {true, csv1.Customer,
		"change spec.topology.classRef to the class of a release with: kubectl edit cluster -n {namespace} {name}"},
	csv1.ReasonNotInitialized: {false, csv1.Customer,
		"see how far its control plane is with: kubectl describe cluster -n {namespace} {name}"},
	csv1.ReasonUnreachable: {false, csv1.PlatformOperator,
		"see how its machines are with: kubectl get machines -n {namespace} -l cluster.x-k8s.io/cluster-name={name}; it is tried again by itself"},
	csv1.ReasonStageWaiting: {false, csv1.Customer,
		"wait; if it takes long, see in the cluster what stage {stage} waits for with: " + inspectCluster},
	csv1.ReasonStageTimedOut: {false, csv1.Customer,
		"see in the cluster why stage {stage} still waits with: " + inspectCluster},
	csv1.ReasonConditionInvalid: {true, csv1.StackAuthor,
		"correct the condition of stage {stage}, publish a new version, and change the cluster's class to it"},
	csv1.ReasonNotHealthy: {false, csv1.Customer, "see in the cluster what is wrong with: " + inspectCluster},
}

// addonByReason is other advice for the same reasons, where it is about add-ons.
var addonByReason = map[string]entry{
	csv1.ReasonInvalid: {true, csv1.StackAuthor,
		"correct the stack, publish a new version, and change the cluster's class to it"},
	csv1.ReasonRefused: {true, csv1.StackAuthor,
		"do what the message says, or remove the object from the stack, publish a new version, and change the cluster's class to it"},
}

// inspectCluster are commands that look into a cluster.
const inspectCluster = "kubectl get secret -n {namespace} {name}-kubeconfig -o 'jsonpath={.data.value}' | base64 -d >{name}.kubeconfig; kubectl --kubeconfig {name}.kubeconfig get pods,events -A"

// maxAction is how long a next step may be in a status.
const maxAction = 1024

// Object is what advice is for, with what fills the words in braces.
type Object struct {
	Kind     string // ClusterStack, ClusterStackRelease or ClusterAddon
	Meta     *metav1.ObjectMeta
	Cluster  string             // of a ClusterAddon
	Class    string             // of a ClusterStackRelease
	Stage    string             // that a ClusterAddon is at
	Stack    *csv1.ClusterStack // may be nil
	Clusters []string           // that use it, as namespace/name

	Conditions []metav1.Condition
	// Releases are those that a ClusterStack or a ClusterAddon waits for: what is to be done about them is to be done
	// about it.
	Releases []csv1.ClusterStackRelease
}

// IsFailure says that what a condition's reason stands for does not get better by itself.
func IsFailure(reason string) bool { return byReason[reason].failed }

// Has says that there is something to do about a reason.
func Has(reason string) bool {
	_, ok := byReason[reason]
	return ok
}

// For says who must act on an object, and what to do next: csv1.Nobody and nothing if all is well or passes by itself.
func For(o Object) (csv1.Actor, string) { return forCondition(o, Reason(o)) }

// Reason is the reason of the condition that For gives advice about; "" if there is none. Ready has the first of all
// that is wrong; what is wrong after that is often only its consequence. But the source of what is served may be gone
// without Ready being false.
func Reason(o Object) string {
	for _, kind := range []string{csv1.ConditionReady, csv1.ConditionSourceAvailable} {
		c := meta.FindStatusCondition(o.Conditions, kind)
		if c == nil || c.Status == metav1.ConditionTrue || c.ObservedGeneration < o.Meta.Generation {
			continue
		}
		// Of what is being deleted, only matters that it is still used.
		if o.Meta.DeletionTimestamp != nil && c.Reason != csv1.ReasonInUse {
			continue
		}
		if Has(c.Reason) || IsOfRelease(c.Reason) {
			return c.Reason
		}
	}
	return ""
}

// IsOfRelease reports whether a reason is that a release is not ready, which says itself what is to be done.
func IsOfRelease(reason string) bool {
	return reason == csv1.ReasonReleasesNotReady || reason == csv1.ReasonReleaseNotReady
}

func forCondition(o Object, reason string) (csv1.Actor, string) {
	if !IsOfRelease(reason) {
		return ForReason(o, reason)
	}
	// An object that waits for a release is never "nobody must act" while that release waits for somebody.
	for _, r := range o.Releases {
		if st := r.Status; r.DeletionTimestamp.IsZero() && st.Actor != csv1.Nobody && st.NextStep != "" {
			return st.Actor, text.Truncate("release "+r.Namespace+"/"+r.Name+": "+st.NextStep, maxAction)
		}
	}
	return csv1.Nobody, ""
}

// ForReason says who must act on an object for one reason, and what to do.
func ForReason(o Object, reason string) (csv1.Actor, string) {
	e, ok := addonByReason[reason]
	if !ok || o.Kind != "ClusterAddon" {
		e, ok = byReason[reason]
	}
	if !ok {
		return csv1.Nobody, ""
	}
	stack, line := "the ClusterStack of its release, which there is not yet", "its line"
	if o.Stack != nil {
		stack, line = "ClusterStack "+o.Stack.Namespace+"/"+o.Stack.Name, describeLine(o.Stack)
	}
	fill := strings.NewReplacer("{namespace}", o.Meta.Namespace, "{name}", cmp.Or(o.Cluster, o.Meta.Name), "{object}",
		kubectlName(o),
		"{class}", o.Class, "{stage}", quoteStage(o.Stage), "{stack}", stack, "{line}", line,
		"{clusters}", cmp.Or(joinNames(o.Clusters), "its conditions name them"))
	action := fill.Replace(e.action)
	if o.Kind != "ClusterStack" && o.Stack != nil && IsOfSource(reason) {
		action += " (" + stack + ")"
	}
	return e.actor, text.Truncate(action, maxAction)
}

// IsOfSource reports whether a reason is about the source of a stack: what is to be done is to be done to the stack.
func IsOfSource(reason string) bool {
	return reason == csv1.ReasonSourceMissing || reason == csv1.ReasonSourceInvalid ||
		reason == csv1.ReasonSourceUnreachable
}

// quoteStage shows where a stage's name begins and ends, unless it is a plain one: a stack's author chooses it, and a
// command for people to copy stands beside it.
func quoteStage(name string) string {
	plain := !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if plain {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// kubectlName is the object as kubectl wants it.
func kubectlName(o Object) string {
	return fmt.Sprintf("%s -n %s %s", strings.ToLower(o.Kind), o.Meta.Namespace, o.Meta.Name)
}

func describeLine(s *csv1.ClusterStack) string {
	return fmt.Sprintf("%s %s for Kubernetes %s in channel %s", s.Spec.Provider, s.Spec.Name, s.Spec.KubernetesVersion,
		cmp.Or(s.Spec.Channel, csv1.ChannelStable))
}

// CurrentStage is the first stage of add-ons that is not done.
func CurrentStage(stages []csv1.StageStatus) string {
	i := slices.IndexFunc(stages, func(s csv1.StageStatus) bool { return s.Phase != csv1.StageDone })
	if i < 0 {
		return ""
	}
	return stages[i].Name
}

// maxNames is how many clusters a sentence names.
const maxNames = 5

func joinNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames:maxNames], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
