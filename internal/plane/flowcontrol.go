package plane

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/pki"
)

// Priority levels of requests. Kubernetes would put the plane's own controllers, the platform operator and all
// customers into one.
const (
	planeLevel    = "polder-plane"
	customerLevel = "polder-customers"
)

// Of the seats that requests are served on, Kubernetes gives each level its part, by shares. All others together have
// otherShares, and there are allSeats.
const (
	otherShares = 245 + planeShares
	planeShares = 60
	allSeats    = 600
)

// customerShares returns the shares of a level with so many seats that customers' requests keep all cores busy, and no
// more: whoever comes next waits for one of those that are being served.
func customerShares(cores int) int32 {
	seats := customerSeats(cores)
	return int32(seats * otherShares / (allSeats - seats)) //nolint:gosec // at most otherShares
}

// customerSeats is how many requests of customers are served at the same time.
func customerSeats(cores int) int { return min(max(8, 5*cores), allSeats/2) }

// flowControl returns who waits for whom when there are more requests than can be served. Customers share a level of
// their own, which borrows nothing of others, and in it each namespace waits for itself: a flood of one delays its own
// requests. Requests without a namespace are told apart by who makes them.
func flowControl(users []string, cores int) []client.Object {
	var own []flowcontrolv1.Subject
	for _, u := range users {
		own = append(own, flowcontrolv1.Subject{
			Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: u},
		})
	}
	group := func(name string) flowcontrolv1.Subject {
		return flowcontrolv1.Subject{
			Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name},
		}
	}
	own = append(own, group(pki.AdminGroup), flowcontrolv1.Subject{
		Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
			Namespace: v1alpha1.ProvidersNamespace, Name: rbacv1.ResourceAll,
		},
	})
	everybody := []flowcontrolv1.Subject{group("system:authenticated")}
	return []client.Object{
		newPriorityLevel(planeLevel, planeShares, nil),
		newPriorityLevel(customerLevel, customerShares(cores), ptr.To[int32](0)),
		newFlowSchema(planeLevel, planeLevel, 600, flowcontrolv1.FlowDistinguisherMethodByUserType, own,
			everyResource(true, true), everyPath()),
		newFlowSchema("polder-customers-namespaces", customerLevel, 8000,
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType, everybody, everyResource(true, false), nil),
		newFlowSchema("polder-customers-users", customerLevel, 8100, flowcontrolv1.FlowDistinguisherMethodByUserType,
			everybody, everyResource(false, true), everyPath()),
	}
}

func newPriorityLevel(name string, shares int32, borrow *int32) client.Object {
	l := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.Spec.Type = flowcontrolv1.PriorityLevelEnablementLimited
	l.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: &shares, BorrowingLimitPercent: borrow, LendablePercent: ptr.To[int32](0),
		LimitResponse: flowcontrolv1.LimitResponse{
			Type: flowcontrolv1.LimitResponseTypeQueue,
			Queuing: &flowcontrolv1.QueuingConfiguration{
				Queues: 128, HandSize: 6, QueueLengthLimit: 50,
			},
		},
	}
	return l
}

func newFlowSchema(name, level string, precedence int32, by flowcontrolv1.FlowDistinguisherMethodType,
	subjects []flowcontrolv1.Subject, resources []flowcontrolv1.ResourcePolicyRule,
	paths []flowcontrolv1.NonResourcePolicyRule) client.Object {
	s := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.PriorityLevelConfiguration.Name, s.Spec.MatchingPrecedence = level, precedence
	s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: by}
	s.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{{
		Subjects: subjects, ResourceRules: resources, NonResourceRules: paths,
	}}
	return s
}

func everyResource(namespaced, clusterScope bool) []flowcontrolv1.ResourcePolicyRule {
	r := flowcontrolv1.ResourcePolicyRule{
		Verbs: []string{flowcontrolv1.VerbAll}, APIGroups: []string{flowcontrolv1.APIGroupAll},
		Resources: []string{flowcontrolv1.ResourceAll}, ClusterScope: clusterScope,
	}
	if namespaced {
		r.Namespaces = []string{flowcontrolv1.NamespaceEvery}
	}
	return []flowcontrolv1.ResourcePolicyRule{r}
}

func everyPath() []flowcontrolv1.NonResourcePolicyRule {
	return []flowcontrolv1.NonResourcePolicyRule{{
		Verbs: []string{flowcontrolv1.VerbAll}, NonResourceURLs: []string{flowcontrolv1.NonResourceAll},
	}}
}
