package objects

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/stack/version"
)

// ListStacks reads the stacks of some namespaces, where "" is all of them, ordered by what they are of and then by
// name. What cannot be read of one namespace does not keep the others back: it is one of the problems, each a sentence
// for people.
func ListStacks(ctx context.Context, a *connect.Access,
	namespaces ...string) (all []csv1.ClusterStack, problems []error) {
	for _, ns := range slices.Compact(namespaces) {
		l, err := List[csv1.ClusterStack](ctx, a, csv1.GroupVersion.WithResource("clusterstacks"), ns, metav1.ListOptions{})
		if err != nil {
			problems = append(problems, a.Explain("listing stacks", err))
		}
		all = append(all, l...)
	}
	slices.SortFunc(all, func(x, y csv1.ClusterStack) int {
		return cmp.Or(strings.Compare(x.Spec.Provider, y.Spec.Provider), strings.Compare(x.Spec.Name, y.Spec.Name),
			CompareMinors(x.Spec.KubernetesVersion, y.Spec.KubernetesVersion),
			strings.Compare(string(x.Spec.Channel), string(y.Spec.Channel)), strings.Compare(x.Namespace, y.Namespace),
			strings.Compare(x.Name, y.Name))
	})
	return all, problems
}

// CompareMinors orders minors of Kubernetes: 1.9 is before 1.10. Texts that are none are ordered by their letters.
func CompareMinors(a, b string) int {
	x, badX := version.ParseKubernetes(a)
	y, badY := version.ParseKubernetes(b)
	if badX != nil || badY != nil {
		return strings.Compare(a, b)
	}
	return version.CompareKubernetes(x, y)
}
