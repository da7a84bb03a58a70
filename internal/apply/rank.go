package apply

import "k8s.io/apimachinery/pkg/runtime/schema"

// rank says when an object is applied: those of the lowest rank first. Objects are deleted in the
// opposite order.
type rank int

const (
	rankNamespacesAndDefinitions rank = iota // nothing else can be created without them
	// must exist before configuration refers to it: a token without its account is deleted
	rankAccountsAndRoles
	rankConfiguration // what workloads read when they start
	rankWorkloads     // what runs
	// what workloads act on; deleted before them, since they remove its finalizers
	rankCustomResources
	rankWebhooksAndClasses // what intercepts everybody's requests, or refers to other objects of the set
)

// rankOfKind has the kinds whose rank differs from that of their group.
var rankOfKind = map[schema.GroupKind]rank{
	{Kind: "Namespace"}: rankNamespacesAndDefinitions,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: rankNamespacesAndDefinitions,
	{Kind: "ServiceAccount"}:                                  rankAccountsAndRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: rankAccountsAndRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        rankAccountsAndRoles,
	{Kind: "Pod"}:                                     rankWorkloads,
	{Kind: "ReplicationController"}:                   rankWorkloads,
	{Group: "cluster.x-k8s.io", Kind: "ClusterClass"}: rankWebhooksAndClasses,
}

// rankOfGroup has Kubernetes' own groups. All others have custom resources.
var rankOfGroup = map[string]rank{
	"":                             rankConfiguration,
	"autoscaling":                  rankConfiguration,
	"certificates.k8s.io":          rankConfiguration,
	"coordination.k8s.io":          rankConfiguration,
	"discovery.k8s.io":             rankConfiguration,
	"events.k8s.io":                rankConfiguration,
	"flowcontrol.apiserver.k8s.io": rankConfiguration,
	"networking.k8s.io":            rankConfiguration,
	"node.k8s.io":                  rankConfiguration,
	"policy":                       rankConfiguration,
	"rbac.authorization.k8s.io":    rankConfiguration,
	"resource.k8s.io":              rankConfiguration,
	"scheduling.k8s.io":            rankConfiguration,
	"storage.k8s.io":               rankConfiguration,
	"apps":                         rankWorkloads,
	"batch":                        rankWorkloads,
	"admissionregistration.k8s.io": rankWebhooksAndClasses,
	"apiregistration.k8s.io":       rankWebhooksAndClasses,
}

func rankOf(r Ref) rank {
	if rank, ok := rankOfKind[schema.GroupKind{Group: r.Group, Kind: r.Kind}]; ok {
		return rank
	}
	if rank, ok := rankOfGroup[r.Group]; ok {
		return rank
	}
	return rankCustomResources
}
