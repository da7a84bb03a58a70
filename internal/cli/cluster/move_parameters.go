package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
)

// moveParameters are either a provider's own, which another does not take, or the stack's, of which only the stack
// knows.
func (m *moveReport) moveParameters(c *v1alpha1.WorkloadCluster, from, to *v1alpha1.Provider) {
	here, there := parametersOf(from), parametersOf(to)
	for _, name := range slices.Sorted(maps.Keys(c.Spec.Parameters)) {
		switch {
		case there[name]:
			m.same = append(m.same, "parameter "+name)
		case here[name]:
			delete(c.Spec.Parameters, name)
			m.lost = append(m.lost, fmt.Sprintf("parameter %s: it is one of provider %s, which %s does not have", name,
				from.Name, to.Name))
		default:
			m.toReview = append(m.toReview,
				fmt.Sprintf("parameter %s: it is the stack's; the plane says if the stack for %s does not have it", name, to.Name))
		}
	}
}

// parametersOf are the names of what a provider itself takes; each has a schema.
func parametersOf(p *v1alpha1.Provider) map[string]bool {
	names := map[string]bool{}
	if p == nil || p.Status.Parameters == nil {
		return names
	}
	var schemas map[string]json.RawMessage
	_ = json.Unmarshal(p.Status.Parameters.Raw, &schemas) // what nobody can read has no names
	for name := range schemas {
		names[name] = true
	}
	return names
}

// reviewStack looks whether there is one that the provider can use. Nobody can force a cluster out of no stack, so this
// is something to look at, and the plane has the last word.
func (m *moveReport) reviewStack(c *v1alpha1.WorkloadCluster, to *v1alpha1.Provider, all []csv1.ClusterStack) {
	ref := c.Spec.Stack
	for _, s := range all {
		if s.Spec.Provider == to.Status.StackProvider && s.Spec.Name == ref.Name &&
			(ref.KubernetesVersion == "" || ref.KubernetesVersion == s.Spec.KubernetesVersion) &&
			channelOf(s) == cmp.Or(ref.Channel, v1alpha1.ChannelStable) {
			if ref.Version != "" {
				m.toReview = append(m.toReview,
					fmt.Sprintf("stack %s: it is there for %s, but versions are counted for each provider; see: polder stacks",
						describeStackReference(ref), to.Name))
				return
			}
			m.same = append(m.same, "stack "+describeStackReference(ref))
			return
		}
	}
	m.toReview = append(m.toReview,
		fmt.Sprintf("stack %s: there is none for %s in this namespace or the catalogue yet; see: polder stacks",
			describeStackReference(ref), to.Name))
}

// channelOf reads an empty channel as the default one.
func channelOf(s csv1.ClusterStack) v1alpha1.Channel {
	return v1alpha1.Channel(cmp.Or(s.Spec.Channel, csv1.ChannelStable))
}

// describeStackReference leaves out the stable channel, which is what people expect.
func describeStackReference(r v1alpha1.StackReference) string {
	channel := string(r.Channel)
	if r.Channel == v1alpha1.ChannelStable {
		channel = ""
	}
	return output.JoinNonEmpty(" ", r.Name, r.KubernetesVersion, channel, r.Version)
}
