// Package nodelabels knows which labels of machines Cluster API puts on their nodes: those it does by itself, and
// those our plane asks it to. Others would be accepted and never be seen.
package nodelabels

import (
	"regexp"
	"strings"
)

// additionalSyncPatterns match labels beside those that Cluster API puts on nodes by itself: all without a domain, and
// those of domains that are neither Kubernetes' nor Cluster API's. Such expressions cannot say "not", so of domains
// that end in .io those whose last name before it begins with k or x are left out.
var additionalSyncPatterns = []*regexp.Regexp{
	regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]*$`),
	regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+([a-z0-9]|[-a-z0-9]{3,}|[a-hj-z0-9][a-z0-9]|i[a-np-z0-9])/[^/]+$`),
	regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-jl-wyz0-9][-a-z0-9]*\.io/[^/]+$`),
}

// AdditionalSyncMachineLabels returns the patterns for Cluster API's option of this name.
func AdditionalSyncMachineLabels() []*regexp.Regexp { return additionalSyncPatterns }

// IsSyncedToNode reports whether a label of a machine gets to its node.
func IsSyncedToNode(key string) bool {
	for _, r := range additionalSyncPatterns {
		if r.MatchString(key) {
			return true
		}
	}
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	if domain == "node-role.kubernetes.io" {
		return true
	}
	for _, own := range []string{"node-restriction.kubernetes.io", "node.cluster.x-k8s.io"} {
		if domain == own || strings.HasSuffix(domain, "."+own) {
			return true
		}
	}
	return false
}
