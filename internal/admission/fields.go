package admission

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/suggest"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/internal/topology/nodelabels"
)

// checkNetwork requires ranges of addresses that do not overlap, with at most one of each IP family for pods, and for
// services.
func (q *clusterReview) checkNetwork() {
	n, at := q.object.Spec.Network, spec.Child("network")
	pods := q.checkRanges(at.Child("podCIDRs"), n.PodCIDRs)
	services := q.checkRanges(at.Child("serviceCIDRs"), n.ServiceCIDRs)
	for i, s := range services {
		for _, p := range pods {
			if s.IsValid() && p.IsValid() && s.Overlaps(p) {
				q.addError(field.Invalid(at.Child("serviceCIDRs").Index(i), n.ServiceCIDRs[i],
					fmt.Sprintf("it overlaps with podCIDRs %s", p)))
			}
		}
	}
}

// checkRanges parses ranges. The result has an invalid prefix in place of each that cannot be read, so that indexes
// stay those of the spec.
func (q *clusterReview) checkRanges(at *field.Path, texts []string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	families := map[bool]bool{}
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			q.addError(field.Invalid(at.Index(i), text, "write a range of addresses such as 10.244.0.0/16"))
			continue
		case p.Masked() != p:
			q.addError(field.Invalid(at.Index(i), text, fmt.Sprintf("it has bits beside the range; write %s", p.Masked())))
			continue
		case families[p.Addr().Is4()]:
			q.addError(field.Invalid(at.Index(i), text, "two ranges must be one of IPv4 and one of IPv6"))
		}
		families[p.Addr().Is4()] = true
		out[i] = p
	}
	return out
}

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
}

// checkWorkers requires names of pools that stay different with their zones added, and labels and taints that nodes can
// have.
func (q *clusterReview) checkWorkers() {
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

// checkLabels forbids labels that Cluster API would accept for machines and never put on nodes.
func (q *clusterReview) checkLabels(at *field.Path, labels map[string]string) {
	q.errs = append(q.errs, metav1validation.ValidateLabels(labels, at)...)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case key == v1alpha1.PoolLabel:
			q.addError(field.Forbidden(at.Key(key), "it is put on all nodes, with the name of their pool"))
		// An invalid key was reported by ValidateLabels already.
		case !nodelabels.IsSyncedToNode(key) && len(validation.IsQualifiedName(key)) == 0:
			q.addError(field.Forbidden(at.Key(key),
				"labels of this domain are not put on nodes; use one without a domain, or of a domain of your own"))
		}
	}
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
