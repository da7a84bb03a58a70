package apply

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// KindPattern matches kinds. Its group and its kind may each begin or end with a star.
type KindPattern struct{ Group, Kind string }

var (
	groupPattern = regexp.MustCompile(`^(\*|\*?[a-z0-9.-]+|[a-z0-9.-]+\*)$`)
	kindPattern  = regexp.MustCompile(`^(\*|\*?[A-Za-z0-9]+|[A-Za-z0-9]+\*)$`)
)

// ParseKindPattern reads group/Kind, or Kind for kinds of Kubernetes' core group.
func ParseKindPattern(s string) (KindPattern, error) {
	group, kind, ok := strings.Cut(s, "/")
	if !ok {
		group, kind = "", s
	}
	if ok && !groupPattern.MatchString(group) || !kindPattern.MatchString(kind) {
		return KindPattern{}, fmt.Errorf(
			"%q stands for no kinds: write group/Kind, for example infrastructure.cluster.x-k8s.io/*Template, or ConfigMap", s,
		)
	}
	return KindPattern{Group: group, Kind: kind}, nil
}

// String returns the pattern in the form that ParseKindPattern reads.
func (p KindPattern) String() string {
	if p.Group == "" {
		return p.Kind
	}
	return p.Group + "/" + p.Kind
}

func (p KindPattern) matches(r Ref) bool {
	return matchesPattern(p.Group, r.Group) && matchesPattern(p.Kind, r.Kind)
}

func matchesPattern(pattern, s string) bool {
	if tail, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(s, tail)
	}
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, head)
	}
	return s == pattern
}

// DefaultKinds are the kinds that a class is made of.
func DefaultKinds() []KindPattern {
	return []KindPattern{
		{"cluster.x-k8s.io", "ClusterClass"},
		{"bootstrap.cluster.x-k8s.io", "*Template"},
		{"controlplane.cluster.x-k8s.io", "*Template"},
		{"infrastructure.cluster.x-k8s.io", "*Template"},
		{"openstack.k-orc.cloud", "Image"},
	}
}

// OnlyKinds allows kinds that match one of the patterns, and no others.
func OnlyKinds(allowed []KindPattern) Rule {
	var names []string
	for _, p := range allowed {
		names = append(names, p.String())
	}
	return func(r Ref, _ *unstructured.Unstructured) error {
		for _, p := range allowed {
			if p.matches(r) {
				return nil
			}
		}
		return fmt.Errorf("%s is not allowed: a release may only bring %s; allow it with --stack-kinds", r,
			strings.Join(names, ", "))
	}
}
