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
	"github.com/polder-kaas/polder/internal/controller/workloadcluster"
	"github.com/polder-kaas/polder/internal/nearest"
	"github.com/polder-kaas/polder/internal/nodelabels"
)

// network must be ranges of addresses that do not overlap, each kind with one of a family.
func (q *question) network() {
	n, at := q.object.Spec.Network, spec.Child("network")
	pods := q.ranges(at.Child("podCIDRs"), n.PodCIDRs)
	services := q.ranges(at.Child("serviceCIDRs"), n.ServiceCIDRs)
	for i, s := range services {
		for _, p := range pods {
			if s.IsValid() && p.IsValid() && s.Overlaps(p) {
				q.add(field.Invalid(at.Child("serviceCIDRs").Index(i), n.ServiceCIDRs[i], fmt.Sprintf("it overlaps with podCIDRs %s", p)))
			}
		}
	}
}

func (q *question) ranges(at *field.Path, texts []string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	families := map[bool]bool{}
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			q.add(field.Invalid(at.Index(i), text, "write a range of addresses such as 10.244.0.0/16"))
			continue
		case p.Masked() != p:
			q.add(field.Invalid(at.Index(i), text, fmt.Sprintf("it has bits beside the range; write %s", p.Masked())))
			continue
		case families[p.Addr().Is4()]:
			q.add(field.Invalid(at.Index(i), text, "two ranges must be one of IPv4 and one of IPv6"))
		}
		families[p.Addr().Is4()] = true
		out[i] = p
	}
	return out
}

func (q *question) oidc() {
	o := q.object.Spec.OIDC
	if o == nil {
		return
	}
	u, err := url.Parse(o.IssuerURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		q.add(field.Invalid(spec.Child("oidc", "issuerURL"), o.IssuerURL, "write the issuer's URL; it begins with https:// and has no query"))
	}
}

// workers must have names that stay different once they are spread over zones, and labels and taints that nodes
// can have.
func (q *question) workers() {
	parts := map[string]string{}
	for i, p := range q.object.Spec.Workers {
		at := spec.Child("workers").Index(i)
		for _, part := range workloadcluster.Spread(p) {
			if other, ok := parts[part.Name]; ok && other != p.Name {
				q.add(field.Invalid(at.Child("name"), p.Name, fmt.Sprintf("with its zone it is called %s, as a part of pool %s is; give it another name", part.Name, other)))
			}
			parts[part.Name] = p.Name
			if len(part.Name) > validation.DNS1123LabelMaxLength {
				q.add(field.Invalid(at.Child("name"), p.Name, fmt.Sprintf("with its zone it is called %s, which is longer than %d characters", part.Name, validation.DNS1123LabelMaxLength)))
			}
		}
		q.labels(at.Child("labels"), p.Labels)
		q.taints(at.Child("taints"), p.Taints)
	}
}

func (q *question) labels(at *field.Path, labels map[string]string) {
	q.errs = append(q.errs, metav1validation.ValidateLabels(labels, at)...)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case key == v1alpha1.PoolLabel:
			q.add(field.Forbidden(at.Key(key), "it is put on all nodes, with the name of their pool"))
		case !nodelabels.Reach(key) && len(validation.IsQualifiedName(key)) == 0:
			q.add(field.Forbidden(at.Key(key), "labels of this domain are not put on nodes; use one without a domain, or of a domain of your own"))
		}
	}
}

func (q *question) taints(at *field.Path, taints []v1alpha1.Taint) {
	for i, t := range taints {
		for _, why := range validation.IsQualifiedName(t.Key) {
			q.add(field.Invalid(at.Index(i).Child("key"), t.Key, why))
		}
		if t.Value != "" {
			for _, why := range validation.IsValidLabelValue(t.Value) {
				q.add(field.Invalid(at.Index(i).Child("value"), t.Value, why))
			}
		}
		if domain, _, ok := strings.Cut(t.Key, "/"); ok && (domain == "node.kubernetes.io" || domain == "node.cluster.x-k8s.io" || domain == "node.cloudprovider.kubernetes.io") {
			q.add(field.Forbidden(at.Index(i).Child("key"), "taints of this domain are Kubernetes' own"))
		}
	}
}

// had says that a pool had the zone before.
func (q *question) had(pool, zone string) bool {
	return q.old != nil && slices.ContainsFunc(q.old.Spec.Workers, func(w v1alpha1.WorkerPool) bool {
		return w.Name == pool && slices.Contains(w.Zones, zone)
	})
}

// zones must be the provider's.
func (q *question) zones(p *v1alpha1.Provider) {
	for i, w := range q.object.Spec.Workers {
		for j, z := range w.Zones {
			at := spec.Child("workers").Index(i).Child("zones").Index(j)
			switch {
			case q.had(w.Name, z): // the provider may have dropped it since
			case len(p.Status.Zones) == 0:
				q.add(field.Forbidden(at, fmt.Sprintf("provider %s does not let zones be chosen", p.Name)))
			case !slices.Contains(p.Status.Zones, z):
				q.add(field.Invalid(at, z, fmt.Sprintf("provider %s has the zones %s%s", p.Name, strings.Join(p.Status.Zones, ", "), nearest.Hint(z, p.Status.Zones))))
			}
		}
	}
}
