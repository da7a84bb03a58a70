package admission

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/polder-kaas/polder/internal/quota"
)

// reservedRanges are addresses that neither pods nor services can have.
var reservedRanges = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "are not for hosts"},
	{netip.MustParsePrefix("127.0.0.0/8"), "are each machine's own (loopback)"},
	{netip.MustParsePrefix("169.254.0.0/16"), "are of each single network (link-local)"},
	{netip.MustParsePrefix("224.0.0.0/3"), "are for groups (multicast), or reserved"},
	{netip.MustParsePrefix("::/8"), "are reserved; loopback is among them"},
	{netip.MustParsePrefix("fe80::/10"), "are of each single network (link-local)"},
	{netip.MustParsePrefix("ff00::/8"), "are for groups (multicast)"},
}

// sizes is what a range may be, by the length of its prefix: from the largest range to the smallest.
type sizes struct{ largest, smallest int }

// What kubeadm and the API server take. Each machine gets a part of the pods' range, which has podsOfMachine bits.
var (
	serviceSizes4, serviceSizes6 = sizes{12, 28}, sizes{108, 124}
	podSizes4, podSizes6         = sizes{8, podsOfMachine4}, sizes{48, podsOfMachine6}
)

const podsOfMachine4, podsOfMachine6 = 24, 64

// choose returns the sizes for the IP family of a range.
func choose(p netip.Prefix, four, six sizes) sizes {
	if p.Addr().Is4() {
		return four
	}
	return six
}

// checkNetwork requires ranges of addresses that Kubernetes can use: of the right size and family, apart from each
// other, and not for something else. Nobody could correct one later, since ranges cannot be changed.
func (q *clusterReview) checkNetwork() {
	n, at := q.object.Spec.Network, spec.Child("network")
	if q.old != nil && slices.Equal(n.PodCIDRs, q.old.Spec.Network.PodCIDRs) &&
		slices.Equal(n.ServiceCIDRs, q.old.Spec.Network.ServiceCIDRs) {
		if quota.MachinesNeeded(q.object) > quota.MachinesNeeded(q.old) {
			q.checkRoomForPods(parseRanges(n.PodCIDRs))
		}
		return
	}
	pods := q.checkRanges(at.Child("podCIDRs"), n.PodCIDRs, podSizes4, podSizes6)
	services := q.checkRanges(at.Child("serviceCIDRs"), n.ServiceCIDRs, serviceSizes4, serviceSizes6)
	for i, s := range services {
		for _, p := range pods {
			if s.IsValid() && p.IsValid() && s.Overlaps(p) {
				q.addError(field.Invalid(at.Child("serviceCIDRs").Index(i), n.ServiceCIDRs[i],
					fmt.Sprintf("it overlaps with podCIDRs %s", p)))
			}
		}
	}
	q.checkFamilies(pods, services)
	q.checkRoomForPods(pods)
}

// checkRanges parses ranges and checks each by itself. The result has an invalid prefix in place of each that cannot be
// read, so that indexes stay those of the spec.
func (q *clusterReview) checkRanges(at *field.Path, texts []string, four, six sizes) []netip.Prefix {
	out := parseRanges(texts)
	families := map[bool]bool{}
	for i, p := range out {
		text := texts[i]
		switch {
		case !p.IsValid():
			q.addError(field.Invalid(at.Index(i), text, "write a range of addresses such as 10.244.0.0/16"))
			continue
		case p.Masked() != p:
			q.addError(field.Invalid(at.Index(i), text, fmt.Sprintf("it has bits beside the range; write %s", p.Masked())))
			out[i] = netip.Prefix{}
			continue
		case families[p.Addr().Is4()]:
			q.addError(field.Invalid(at.Index(i), text, "two ranges must be one of IPv4 and one of IPv6"))
		}
		families[p.Addr().Is4()] = true
		q.checkRange(at.Index(i), p, choose(p, four, six))
	}
	return out
}

// parseRanges returns an invalid prefix in place of each that cannot be read.
func parseRanges(texts []string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out[i] = p
		}
	}
	return out
}

// checkRange requires a range of a size that is possible, of addresses that are for hosts.
func (q *clusterReview) checkRange(at *field.Path, p netip.Prefix, s sizes) {
	for _, r := range reservedRanges {
		if r.prefix.Overlaps(p) {
			q.addError(field.Invalid(at, p.String(), fmt.Sprintf("addresses of %s %s; choose a private range such as 10.96.0.0/16",
				r.prefix, r.what)))
			return
		}
	}
	if p.Bits() < s.largest || p.Bits() > s.smallest {
		q.addError(field.Invalid(at, p.String(), fmt.Sprintf("the number behind the slash is from %d, the largest range, to %d",
			s.largest, s.smallest)))
	}
}

// checkFamilies requires that pods have addresses of each IP family that services have.
func (q *clusterReview) checkFamilies(pods, services []netip.Prefix) {
	if slices.ContainsFunc(slices.Concat(pods, services), func(p netip.Prefix) bool { return !p.IsValid() }) {
		return // reported already
	}
	for i, s := range services {
		if slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Addr().Is4() == s.Addr().Is4() }) {
			continue
		}
		family := "IPv6"
		if s.Addr().Is4() {
			family = "IPv4"
		}
		q.addError(field.Invalid(spec.Child("network", "serviceCIDRs").Index(i), s.String(),
			fmt.Sprintf("it is of %s, and podCIDRs has no such range; write one there, or take a range of the pods' family", family)))
	}
}

// checkRoomForPods requires a range of pods that has a part for each machine.
func (q *clusterReview) checkRoomForPods(pods []netip.Prefix) {
	needs := quota.MachinesNeeded(q.object)
	for i, p := range pods {
		bits := podsOfMachine6
		if p.IsValid() && p.Addr().Is4() {
			bits = podsOfMachine4
		}
		if !p.IsValid() || p.Bits() > bits || bits-p.Bits() >= 32 { //nolint:mnd // more machines than can be counted
			continue // reported already, or large enough
		}
		if room := int64(1) << (bits - p.Bits()); room < needs {
			q.addError(field.Invalid(spec.Child("network", "podCIDRs").Index(i), p.String(),
				fmt.Sprintf("it has room for %d machines, each with a /%d, and while machines are replaced the cluster has %d; "+
					"ask for fewer, or make a cluster with a larger range", room, bits, needs)))
		}
	}
}
