package apply

import "k8s.io/apimachinery/pkg/runtime/schema"

// rank says when an object is applied: those of the lowest rank first. Objects are deleted in the
// opposite order.
type rank int

const (
	foundations rank = iota // others are impossible without them
	identities              // what settings refer to and must find: a token without its account is deleted
	settings                // what workloads find when they start
	workloads               // what runs
	customs                 // what workloads act on; it goes before they do, since they let go of it
	gates                   // what stands before everybody's requests, or is made of other objects of the set
)

// rankOfKind has the kinds that do not go with their group.
var rankOfKind = map[schema.GroupKind]rank{
	{Kind: "Namespace"}: foundations,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: foundations,
	{Kind: "ServiceAccount"}:                                  identities,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: identities,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        identities,
	{Kind: "Pod"}:                                     workloads,
	{Kind: "ReplicationController"}:                   workloads,
	{Group: "cluster.x-k8s.io", Kind: "ClusterClass"}: gates,
}

// rankOfGroup has Kubernetes' own groups. All others are customs.
var rankOfGroup = map[string]rank{
	"":                             settings,
	"autoscaling":                  settings,
	"certificates.k8s.io":          settings,
	"coordination.k8s.io":          settings,
	"discovery.k8s.io":             settings,
	"events.k8s.io":                settings,
	"flowcontrol.apiserver.k8s.io": settings,
	"networking.k8s.io":            settings,
	"node.k8s.io":                  settings,
	"policy":                       settings,
	"rbac.authorization.k8s.io":    settings,
	"resource.k8s.io":              settings,
	"scheduling.k8s.io":            settings,
	"storage.k8s.io":               settings,
	"apps":                         workloads,
	"batch":                        workloads,
	"admissionregistration.k8s.io": gates,
	"apiregistration.k8s.io":       gates,
}

func rankOf(r Ref) rank {
	if rank, ok := rankOfKind[schema.GroupKind{Group: r.Group, Kind: r.Kind}]; ok {
		return rank
	}
	if rank, ok := rankOfGroup[r.Group]; ok {
		return rank
	}
	return customs
}
