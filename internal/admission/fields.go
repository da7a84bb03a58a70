package admission

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/suggest"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/internal/topology/nodelabels"
	"github.com/polder-kaas/polder/provider"
)

// checkOIDC checks the form of the issuer's URL that OpenID Connect requires.
func (q *clusterReview) checkOIDC() {
	o := q.object.Spec.OIDC
	if o == nil {
		return
	}
	u, err := url.Parse(o.IssuerURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		q.addError(field.Invalid(spec.Child("oidc", "issuerURL"), o.IssuerURL,
			"write the issuer's URL; it begins with https:// and has no query"))
	}
	for name, value := range map[string]string{
		"clientID": o.ClientID, "usernameClaim": o.UsernameClaim, "groupsClaim": o.GroupsClaim,
		"usernamePrefix": o.UsernamePrefix, "groupsPrefix": o.GroupsPrefix,
	} {
		q.checkOIDCText(name, value)
	}
}

// checkOIDCText forbids what no issuer has in a name, and what would be read as something else where it ends up: in the
// flags of the API server. Names that begin with system: are Kubernetes' own.
func (q *clusterReview) checkOIDCText(name, value string) {
	at := spec.Child("oidc", name)
	isPrefix := strings.HasSuffix(name, "Prefix")
	switch {
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		q.addError(field.Invalid(at, value, "it has blanks or characters that cannot be seen; write what the issuer calls it"))
	case strings.HasPrefix(value, "-") && (!isPrefix || value != "-"):
		q.addError(field.Invalid(at, value, "it begins with -, as a flag does; write what the issuer calls it"))
	case isPrefix && strings.HasPrefix(value, "system:"):
		q.addError(field.Invalid(at, value,
			"names that begin with system: are Kubernetes' own, and would be given its rights; write another, such as oidc:"))
	}
}

// checkWorkers requires names of pools that stay different with their zones added, and labels and taints that nodes can
// have.
func (q *clusterReview) checkWorkers() {
	q.checkTotal()
	parts := map[string]string{}
	for i, p := range q.object.Spec.Workers {
		at := spec.Child("workers").Index(i)
		for _, part := range topology.SplitByZone(p) {
			if other, ok := parts[part.Name]; ok && other != p.Name {
				q.addError(field.Invalid(at.Child("name"), p.Name,
					fmt.Sprintf("with its zone it is called %s, as a part of pool %s is; give it another name", part.Name, other)))
			}
			parts[part.Name] = p.Name
			// Cluster API puts the name into labels, which cannot be longer.
			if len(part.Name) > validation.DNS1123LabelMaxLength {
				q.addError(field.Invalid(at.Child("name"), p.Name,
					fmt.Sprintf("with its zone it is called %s, which is longer than %d characters", part.Name,
						validation.DNS1123LabelMaxLength)))
			}
		}
		q.checkLabels(at.Child("labels"), p.Labels)
		q.checkTaints(at.Child("taints"), p.Taints)
	}
}

// The least memory that machines need: kubeadm makes no control plane with less, and a kubelet and a runtime do not
// fit into less.
const (
	minControlPlaneMiB = 1700
	minWorkerMiB       = 512
)

// checkShapes forbids machines on which Kubernetes never starts, unless the cluster has them already.
func (q *clusterReview) checkShapes() {
	controlPlane := q.object.Spec.ControlPlane.Machine
	var old *v1alpha1.MachineShape
	had := map[string]*v1alpha1.MachineShape{}
	if q.old != nil {
		old = q.old.Spec.ControlPlane.Machine
		for _, p := range q.old.Spec.Workers {
			had[p.Name] = p.Machine
		}
	}
	q.checkShape(spec.Child("controlPlane", "machine"), controlPlane, old, minControlPlaneMiB)
	for i, p := range q.object.Spec.Workers {
		q.checkShape(spec.Child("workers").Index(i).Child("machine"), p.Machine, had[p.Name], minWorkerMiB)
	}
}

// checkShape checks one shape. What else is wrong with it says the provider. Quantities are not compared before ShapeOf
// has read them: that takes for ever if somebody writes 1e2000000000.
func (q *clusterReview) checkShape(at *field.Path, m, old *v1alpha1.MachineShape, least int) {
	if m == nil {
		return
	}
	s, err := provider.ShapeOf(*m)
	if err != nil || s.MemoryMiB >= least {
		return
	}
	if was, err := provider.ShapeOf(ptr.Deref(old, v1alpha1.MachineShape{})); err != nil || was != s {
		q.addError(field.Invalid(at.Child("memory"), m.Memory.String(),
			fmt.Sprintf("Kubernetes does not start with less than %dMi here; write at least that", least)))
	}
}

// maxMachines is how many machines a cluster may have: Kubernetes is made and tested for 5,000 nodes.
const maxMachines = 5000

// checkTotal bounds all pools together.
func (q *clusterReview) checkTotal() {
	total := int64(ptr.Deref(q.object.Spec.ControlPlane.Replicas, 1))
	for _, p := range q.object.Spec.Workers {
		total += int64(ptr.Deref(p.Replicas, 1))
	}
	if total > maxMachines {
		q.addError(field.Invalid(spec.Child("workers"), field.OmitValueType{},
			fmt.Sprintf("all pools and the control plane together have %d machines; a cluster has at most %d", total, maxMachines)))
	}
}

// checkLabels forbids labels that Cluster API would accept for machines and never put on nodes.
func (q *clusterReview) checkLabels(at *field.Path, labels map[string]string) {
	q.errs = append(q.errs, metav1validation.ValidateLabels(labels, at)...)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case key == v1alpha1.PoolLabel:
			q.addError(field.Forbidden(at.Key(key), "it is put on all nodes, with the name of their pool"))
		case hasDomain(key, "polder.dev"), hasDomain(key, "node-role.kubernetes.io"):
			q.addError(field.Forbidden(at.Key(key), "labels of this domain say what a node is for Polder or Kubernetes itself; "+
				"use one without a domain, or of a domain of your own"))
		// An invalid key was reported by ValidateLabels already.
		case !nodelabels.IsSyncedToNode(key) && len(validation.IsQualifiedName(key)) == 0:
			q.addError(field.Forbidden(at.Key(key),
				"labels of this domain are not put on nodes; use one without a domain, or of a domain of your own"))
		}
	}
}

// hasDomain reports whether a key is of a domain, or of one below it.
func hasDomain(key, domain string) bool {
	of, _, ok := strings.Cut(key, "/")
	return ok && (of == domain || strings.HasSuffix(of, "."+domain))
}

// checkTaints forbids, beside invalid taints, those that Kubernetes and Cluster API set and remove themselves.
func (q *clusterReview) checkTaints(at *field.Path, taints []v1alpha1.Taint) {
	for i, t := range taints {
		for _, why := range validation.IsQualifiedName(t.Key) {
			q.addError(field.Invalid(at.Index(i).Child("key"), t.Key, why))
		}
		if t.Value != "" {
			for _, why := range validation.IsValidLabelValue(t.Value) {
				q.addError(field.Invalid(at.Index(i).Child("value"), t.Value, why))
			}
		}
		if domain, _, ok := strings.Cut(t.Key, "/"); ok &&
			(domain == "node.kubernetes.io" || domain == "node.cluster.x-k8s.io" ||
				domain == "node.cloudprovider.kubernetes.io") {
			q.addError(field.Forbidden(at.Index(i).Child("key"), "taints of this domain are Kubernetes' own"))
		}
	}
}

// hadZone reports whether a pool had the zone before the change.
func (q *clusterReview) hadZone(pool, zone string) bool {
	return q.old != nil && slices.ContainsFunc(q.old.Spec.Workers, func(w v1alpha1.WorkerPool) bool {
		return w.Name == pool && slices.Contains(w.Zones, zone)
	})
}

// checkZones requires zones that the provider has, except for those a pool had before.
func (q *clusterReview) checkZones(p *v1alpha1.Provider) {
	for i, w := range q.object.Spec.Workers {
		for j, z := range w.Zones {
			at := spec.Child("workers").Index(i).Child("zones").Index(j)
			switch {
			case q.hadZone(w.Name, z): // the provider may have withdrawn it since
			case len(p.Status.Zones) == 0:
				q.addError(field.Forbidden(at, fmt.Sprintf("provider %s does not let zones be chosen", p.Name)))
			case !slices.Contains(p.Status.Zones, z):
				q.addError(field.Invalid(at, z,
					fmt.Sprintf("provider %s has the zones %s%s", p.Name, strings.Join(p.Status.Zones, ", "),
						suggest.Hint(z, p.Status.Zones))))
			}
		}
	}
}
